#!/usr/bin/perl
# blocks.pl FOLDER: prints each example of the project's pages that no test runs and that the list below does not name,
# and what the list has too much; an annex has its part of the list in tests/not_run. An example is run where a test takes it by `block PAGE LANGUAGE TEXT` (tests/tap.sh),
# or runs all of a page: `guide` in tests/cli. Of commands within a sentence, their options and make's targets exist.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;
use File::Find;

chdir $ARGV[0] or die "$ARGV[0]: $!\n";
my (@pages, @tests);
find({ no_chdir => 1, wanted => sub {
	$File::Find::prune = 1 if m{/(results|node_modules)$};
	push @pages, $_ if /\.md$/ || /\.[1-8](\.in)?$/;
	push @tests, $_ if /\.(sh|inc)$/ && m{(?:^|/)tests/};
} }, qw(bench lib tests tools));
push @pages, glob '*.md';

# What is between quotes may have a variable of the shell: anything can be there.
my $word = qr/'[^']*'|"(?:[^"\\]|\\.)*"|[^\s'"|;<>()]+/;
my @calls;
for my $file (@tests) {
	local (@ARGV, $/) = $file;
	my $source = <>;
	while ($source =~ /\bblock ([\w\/.-]+\.(?:md|\d|in)) ($word)(?: ($word))?/g) {
		my ($page, $language, $text) = ($1, $2, $3 // '');
		my $expands = $text !~ /^'/;
		s/^(['"])(.*)\1$/$2/ for $language, $text;
		my $pattern = join '.*', map { quotemeta s/\\(.)/$expands ? $1 : "\\$1"/ger } $expands ? split(/\$\w+/, $text, -1) : $text;
		push @calls, { page => $page, language => $language, pattern => qr/$pattern/, all => scalar($pattern =~ /\.\*/), file => $file };
	}
}
# Blocks whose commands are all of make's are run by other tests and by everyone: here their targets exist.
my %target = map { $_ => 1 } map { split } `make -pqrR 2>/dev/null` =~ /^([\w. -]+):(?!=)/mg;
sub makes { !grep { !/^(?:sudo )?make((?: [\w.-]+(?:='[^']*'|=\S+)?)*)$/ || grep { !/=/ && !/^-/ && !$target{$_} } split ' ', $1 =~ s/'[^']*'//gr } map { s/\s*#.*//r } split /\n| && /, shift }
my @not_run = <DATA>;
for my $list (glob '*/*/tests/not_run') {
	open my $in, '<', $list or die "$list: $!\n";
	push @not_run, <$in>;
}
my @listed = map { chomp; my ($page, $text, $reason) = split / \| /; { page => $page, text => $text, reason => $reason } } @not_run;

for my $page (sort @pages) {
	my $guide = $page =~ m{^lib/doc/|^tools/shmlimit/oncall\.md$};
	$ENV{list} = 1;
	# tests/cli/manual runs the section EXAMPLES.
	my $shown = $page eq 'tools/shmlimit/shmlimit.1' ? 'sed "/^.Sh EXAMPLES/,/^.Sh [^E]/d"' : 'cat';
	for (`$shown $page | awk -v page=$page -f tests/block.awk`) {
		chomp;
		my ($language, $block) = split /\t/, $_, 2;
		$block =~ tr/\1/\n/;
		my $run = $guide && $language =~ /^console$|^(?:python|ini) ./ || $page =~ m{^lib/doc/} && $language =~ /^(?:nginx|yaml)$/;
		$run ||= makes($block);
		for my $call (grep { $_->{page} eq $page && $_->{language} eq $language } @calls) {
			next if $call->{used} && !$call->{all} || $block !~ /$call->{pattern}/;
			$call->{used} = $run = 1;
		}
		for my $entry (grep { $_->{page} eq $page && index($block, $_->{text}) >= 0 } @listed) {
			print "$page: is run, and is in the list: $entry->{text}\n" if $run;
			$entry->{used} = $run = 1;
		}
		print "$page: no test runs it: $language: ", $block =~ /^(.*)/, "\n" if !$run;
	}
}
my %help;
for my $page (grep { /\.md$/ } @pages) {
	local (@ARGV, $/) = $page;
	for my $span (<> =~ s/^```.*?^```//msgr =~ /`((?:sudo )?(?:shmlimit|make) [^`]+)`/g) {
		my @listed = grep { $_->{page} eq $page && index($span, $_->{text}) == 0 } @listed;
		$_->{used} = 1 for @listed;
		for (@listed ? () : split /\s(?:\||&&)\s/, $span) {
			print "$page: make has no such target: $_\n" if /^(?:sudo )?make [a-z]/ && !makes($_);
			my ($command) = /^(?:sudo )?shmlimit\s+((?:rule|global)\s+[a-z]+|[a-z]+)/ or next;
			my $help = $help{$command} //= `shmlimit $command --help 2>&1`;
			print "$page: no such option: $_\n" for grep { $help !~ /(?<![\w-])\Q$_\E(?![\w-])/ } $help =~ /^usage/ ? /\s(--[a-z-]+)/g : $_;
		}
	}
}
print "$_->{file}: no example in $_->{page} has $_->{pattern}\n" for grep { !$_->{used} } @calls;
for my $entry (@listed) {
	print "$entry->{page}: no such test: $_\n" for grep { !-e && !-e "$_.sh" } $entry->{reason} =~ m{((?:tools/\w+/)?tests/[\w/]+)}g;
}
print "$_->{page}: no example has $_->{text}\n" for grep { !$_->{used} || !$_->{reason} } @listed;

# A page, a text of the example, and the reason why no test runs it.
__DATA__
bench/README.md | floor = ( | a formula
bench/README.md | rate = decisions | a formula
lib/debugging.md | gdb --args | a debugger's session
lib/debugging.md | gdb -p 4711 | a debugger's session; tests/build/gdb prints slots by the same script
lib/doc/containers.md | docker build | tests/release/container takes the Containerfile's steps without Docker
lib/doc/logins.md | auth requisite | a line of PAM's configuration; tests/cli/logins runs its program as pam_exec does
lib/doc/upgrade.md | apt purge | tests/build/deb, install and tests/release do it in roots of their own
lib/release.md | git tag | makes a release; tests/build/dist makes the tarball
lib/shmlimit.7 | bpftrace -e | needs a kernel's permission; tests/build/probes has the probe and its arguments
tests/README.md | not ok 2 | what a failure prints
tools/nginx/README.md | shmlimit off | a directive of nginx
