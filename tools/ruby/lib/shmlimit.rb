# frozen_string_literal: true

# One rate limit for all processes of a host: see README.md, and shmlimit(3) for what each method does.
#
# SPDX-License-Identifier: BSD-2-Clause
require_relative "shmlimit/version"
require "shmlimit/native"
require_relative "shmlimit/limiter"

module Shmlimit
  autoload :Store, File.expand_path("shmlimit/store", __dir__)
  autoload :Middleware, File.expand_path("shmlimit/middleware", __dir__)

  class << self
    # Where problems with segments are reported: anything with `warn` and `info`, such as Rails.logger. nil: standard error.
    attr_accessor :logger

    # A problem begins (bad is true) or ends. The same text comes at most once a minute in each process.
    def report(bad, text)
      to = logger if Ractor.current == Ractor.main # others cannot read it
      if to
        bad ? to.warn("shmlimit: #{text}") : to.info("shmlimit: #{text}")
      else
        Kernel.warn("shmlimit: #{text}")
      end
    end
  end
end
