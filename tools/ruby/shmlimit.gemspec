# frozen_string_literal: true

require_relative "lib/shmlimit/version"

Gem::Specification.new do |gem|
  gem.name = "shmlimit"
  gem.version = Shmlimit::VERSION
  gem.summary = "One rate limit for all processes of a host, in shared memory"
  gem.description = "Exact rate limits over all workers of Puma or Unicorn, without a server: a store for Rack::Attack and " \
                    "for Rails' rate_limit, a Rack middleware, and the functions of libshmlimit."
  gem.authors = ["the shmlimit authors"]
  gem.license = "BSD-2-Clause"
  gem.required_ruby_version = ">= 3.0"
  gem.files = Dir.chdir(__dir__) { Dir["README.md", "LICENSE*", "lib/**/*.rb", "sig/**/*.rbs", "ext/**/*.{c,h,rb}", "sources/**/*", "lib/shmlimit/*.so*"] }
  # With the libraries (tools/bundles.mk) it is for this architecture and for the Ruby that built it.
  if File.exist?("#{__dir__}/lib/shmlimit/native.so")
    gem.platform = Gem::Platform.local
    gem.required_ruby_version = "~> #{RUBY_VERSION[/\d+\.\d+/]}.0"
  else
    gem.extensions = ["ext/shmlimit/extconf.rb"]
  end
end
