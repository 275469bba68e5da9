# frozen_string_literal: true

# SPDX-License-Identifier: BSD-2-Clause
require_relative "../shmlimit"

module Rack
  autoload :BodyProxy, "rack/body_proxy"
end

module Shmlimit
  # The limits in front of a Rack application.
  #
  #   use Shmlimit::Middleware, 'segment=web create=yes rule=client rate="5/minute" prefix=32,64'
  #
  # The text is that of shmlimit_gate_open(3). The block, if there is one, gets the environment of a request and returns
  # its key; or, for several limits, an Array of their keys in the text's order. A key is a String; nil, if the limit does not
  # apply; or [key, cost]; or, with algorithm=gcra in the text, [key, nil, limit], with the limit of this request, such as that of its
  # customer's plan; rate_error= decides where it cannot be read. Without a block the key of each limit is the address that the server names, REMOTE_ADDR.
  #
  # A limit of how many at once, rate="20 at once", counts a request until its response was sent or the client is gone, which
  # is when the server closes the body, or, where the application takes over the connection (rack.hijack), as for a WebSocket, when
  # that is closed.
  #
  # A limit with estimate=500 takes 500 before; charge: is called with the environment, the status and the header fields when the
  # server closes the body, and says what the request has used in all: an Integer, or an Array with one for each limit, nil where
  # it is not known. The difference is charged or given back. While a limit with delay= has no tokens yet, a request waits.
  #
  # The outcome is in env["shmlimit.outcome"], the Answer in env["shmlimit.answer"].
  class Middleware
    TEXTS = { 429 => "Too Many Requests\n", 503 => "Service Unavailable\n" }.freeze
    private_constant :TEXTS

    # Says once in a process that behind a proxy all clients are one. WHY NOT in the middleware: Rack may freeze that.
    class Watch
      # That proxies write, by their names in the environment.
      FIELDS = %w[X-Forwarded-For Forwarded X-Real-IP CF-Connecting-IP].to_h { |field| ["HTTP_#{field.upcase.tr('-', '_')}", field] }.freeze
      ADVICE = "a block that returns Rack::Request.new(env).ip believes proxies on private addresses"
      # How many requests are looked at. Then it is one in a hundred: what comes so late is rare.
      LOOKS = 10_000

      def initialize(gate)
        @gate = gate
        @looks = gate.forwarded("127.0.0.1")
        @seen = 0
      end

      # Where the field has the peer's address, that was put in the place of a proxy's.
      def look(env, keys)
        return unless @looks

        @seen += 1
        return if @seen > LOOKS && @seen % 100 != 0

        name, field = FIELDS.find { |name, _| env.key?(name) }
        peer = env["REMOTE_ADDR"].to_s
        return if name.nil? || ![keys].flatten.include?(peer) || env[name].include?(peer)

        @looks = !@gate.forwarded(peer, field, ADVICE) && @gate.forwarded("127.0.0.1")
      end
    end
    private_constant :Watch

    # refused: an application that answers requests that a limit refused; its response gets the header fields too.
    def initialize(app, spec, refused: nil, charge: nil, &keys)
      @app = app
      @gate = Gate.new(spec)
      @refused = refused
      @charge = charge
      @limits = @gate.limits
      @keys = keys
      @watch = Watch.new(@gate)
    end

    def call(env)
      answer = enter(env)
      env["shmlimit.answer"] = answer
      env["shmlimit.outcome"] = answer.outcome
      answer.places ? hold(env, answer) : respond(env, answer)
    end

    private

    def hold(env, answer)
      taken = false
      status = headers = nil
      take_over = lambda do |io|
        taken = true
        when_closed(io) { finish(env, status, headers, answer.places) }
      end
      hijack = env["rack.hijack"]
      env["rack.hijack"] = -> { take_over.call(hijack.call) } if hijack
      status, headers, body = respond(env, answer)
      partial = headers["rack.hijack"] if env["rack.hijack?"]
      headers["rack.hijack"] = ->(io) { partial.call(take_over.call(io)) } if partial
      held = Rack::BodyProxy.new(body) { finish(env, status, headers, answer.places) unless taken }
      [status, headers, held]
    ensure
      @gate.leave(answer.places) unless held || taken
    end

    # The connection that an application takes over.
    def when_closed(io, &finish)
      io.define_singleton_method(:close) do
        super()
      ensure
        finish&.call
        finish = nil
      end
      io
    end

    def finish(env, status, headers, places)
      @gate.settle(places, @charge.call(env, status, headers)) if @charge
    ensure
      @gate.leave(places)
    end

    def respond(env, answer)
      status, headers, body = answer.allowed? ? @app.call(env) : refuse(env, answer)
      headers = headers.dup if headers.frozen?
      answer.fields.each { |name, value| headers[name] = value }
      [status, headers, body]
    end

    def enter(env)
      if @keys.nil?
        address = env["REMOTE_ADDR"].to_s
        @watch.look(env, address)
        return @limits == 1 ? @gate.enter(address) : @gate.enter(*([address] * @limits))
      end
      keys = @keys.call(env)
      @watch.look(env, keys)
      keys.is_a?(Array) && @limits > 1 ? @gate.enter(*keys) : @gate.enter(keys)
    end

    def refuse(env, answer)
      return @refused.call(env) if @refused

      [answer.status, { "content-type" => "text/plain" }, [TEXTS.fetch(answer.status, "Refused\n")]]
    end
  end
end
