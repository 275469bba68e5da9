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
  # is when the server closes the body.
  #
  # A limit with estimate=500 takes 500 before; charge: is called with the environment, the status and the header fields when the
  # server closes the body, and says what the request has used in all: an Integer, or an Array with one for each limit, nil where
  # it is not known. The difference is charged or given back. While a limit with delay= has no tokens yet, a request waits.
  #
  # The outcome is in env["shmlimit.outcome"], the Answer in env["shmlimit.answer"].
  class Middleware
    TEXTS = { 429 => "Too Many Requests\n", 503 => "Service Unavailable\n" }.freeze
    private_constant :TEXTS

    # refused: an application that answers requests that a limit refused; its response gets the header fields too.
    def initialize(app, spec, refused: nil, charge: nil, &keys)
      @app = app
      @gate = Gate.new(spec)
      @refused = refused
      @charge = charge
      @limits = @gate.limits
      @keys = keys
    end

    def call(env)
      answer = enter(env)
      env["shmlimit.answer"] = answer
      env["shmlimit.outcome"] = answer.outcome
      answer.places ? hold(env, answer) : respond(env, answer)
    end

    private

    def hold(env, answer)
      status, headers, body = respond(env, answer)
      held = Rack::BodyProxy.new(body) { finish(env, status, headers, answer.places) }
      [status, headers, held]
    ensure
      @gate.leave(answer.places) unless held
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
        return @limits == 1 ? @gate.enter(address) : @gate.enter(*([address] * @limits))
      end
      keys = @keys.call(env)
      keys.is_a?(Array) && @limits > 1 ? @gate.enter(*keys) : @gate.enter(keys)
    end

    def refuse(env, answer)
      return @refused.call(env) if @refused

      [answer.status, { "content-type" => "text/plain" }, [TEXTS.fetch(answer.status, "Refused\n")]]
    end
  end
end
