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
  gem.files = Dir.chdir(__dir__) { Dir["README.md", "lib/**/*.rb", "sig/**/*.rbs", "ext/**/*.{c,h,rb}"] }
  gem.extensions = ["ext/shmlimit/extconf.rb"]
end
