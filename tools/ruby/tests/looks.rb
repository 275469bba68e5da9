# frozen_string_literal: true

# looks: how many requests the middleware looks for header fields of, and how many it reports, in a process of its own.
#
# usage: looks.rb [NAME WORDS FIELD REQUESTS]...
#
# SPDX-License-Identifier: BSD-2-Clause
require "stringio"
require "shmlimit/middleware"

# An environment that knows whether it was asked for such fields.
class Asked < Hash
  attr_reader :looked

  def key?(name)
    @looked = 1 if name == "HTTP_X_FORWARDED_FOR"
    super
  end
end

uses = {}
answers = ARGV.each_slice(4).map do |name, words, field, requests|
  text = "segment=#{ENV.fetch('SEGMENT')} create=yes #{words} rule=client rate=1000000/s"
  use = uses[name] ||= Shmlimit::Middleware.new(->(_env) { [200, {}, []] }, text).freeze
  $stderr = StringIO.new
  looked = Integer(requests).times.sum do
    env = Asked.new.update("REMOTE_ADDR" => "127.0.0.1")
    env["HTTP_X_FORWARDED_FOR"] = field unless field.empty?
    use.call(env)
    env.looked.to_i
  end
  "#{looked}/#{$stderr.string.scan('behind a proxy all clients are one').size}"
end
puts answers.join(" ")
