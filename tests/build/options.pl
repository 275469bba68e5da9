# options.pl PAGE PROGRAM: which options the synopsis of each command in the manual page has, and its --help has not,
# or the other way round. Prints a line for each.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my ($page, $program) = @ARGV;
open my $in, '<', $page or die "$page: $!\n";
my ($synopsis) = do { local $/; <$in> } =~ /^\.Sh SYNOPSIS\n(.*?)^\.Sh /ms;
my (%page, %key);

for (split /^\.Nm\n/m, $synopsis) {
	my ($words) = /^\.Cm ([a-z]+(?: [a-z]+)*)/ or next;

	$page{$words} //= {};
	$page{$words}{$_} = 1 for /\bFl -([a-z][a-z-]*)/g;
	$key{$words} = 1 if /key-option/;
}
for my $command (sort keys %page) {
	my $help = `$program $command --help`;
	my %help = map { $_ => 1 } $help =~ /^ +(?:-\w, )?--([a-z][a-z-]*)/gm;
	# What stands for the operand KEY has a list of its own in the page.
	my @apart = ('help', $key{$command} ? qw(key-ip key-text prefix key-hex fingerprint) : ());

	delete @help{@apart};
	delete @{$page{$command}}{@apart};
	print "$command: --$_ is in the manual and not in --help\n" for grep { !$help{$_} && $help !~ /--$_\b/ } sort keys %{$page{$command}};
	print "$command: --$_ is in --help and not in the manual\n" for grep { !$page{$command}{$_} } sort keys %help;
}
# The commands themselves, as the list of them has them.
my %listed = map { $_ => 1 } `$program --help` =~ /^  ([a-z]+(?: (?!NAME)[a-z]+)?) /gm;
print "$_: in --help and not in the manual\n" for grep { !$page{$_} } sort keys %listed;
print "$_: in the manual and not in --help\n" for grep { !$listed{$_} } sort keys %page;
