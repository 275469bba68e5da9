# seeds.pl unpack FILE FOLDER: writes each input of a file of seeds into the folder, which it makes.
# seeds.pl add FILE INPUT...: adds inputs to it, each by the name of its file.
#
# A file of seeds has an input a line: its name, a tab, its bytes. A backslash, and each byte that is not printable ASCII, is \xHH.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my ($verb, $seeds, @rest) = @ARGV;
die "usage: seeds.pl unpack FILE FOLDER | add FILE INPUT...\n" if !@rest || $verb !~ /^(?:unpack|add)$/;

sub bytes { open my $in, '<:raw', $_[0] or die "$_[0]: $!\n"; local $/; return scalar <$in> // '' }

my %input;
for (-e $seeds || $verb eq 'unpack' ? split /\n/, bytes($seeds) : ()) {
	my ($name, $text) = /^([\w.-]+)\t([ -~]*)$/ or die "$seeds: no input: $_\n";
	die "$seeds: $name is there twice\n" if exists $input{$name};
	$input{$name} = $text;
}
if ($verb eq 'unpack') {
	mkdir $rest[0];
	for my $name (keys %input) {
		open my $out, '>:raw', "$rest[0]/$name" or die "$rest[0]/$name: $!\n";
		print $out $input{$name} =~ s/\\x(..)/chr hex $1/ger;
		close $out or die "$rest[0]/$name: $!\n";
	}
} else {
	$input{s/.*\///r} = bytes($_) =~ s/[^ -\[\]-~]/sprintf '\\x%02x', ord $&/ger for @rest;
	open my $out, '>:raw', $seeds or die "$seeds: $!\n";
	print $out "$_\t$input{$_}\n" for sort keys %input;
}
