# docs.pl HEADER PAGE [OTHER HEADERS]: what of a public header does not stand in its manual page as it is: each function with its
# return type and arguments, each member of a structure with its type, each constant. The page may name constants of the
# other headers too. Prints a line for each.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my ($header, $page) = map { local (@ARGV, $/) = $_; <> } @ARGV[0, 1];
my @others = @ARGV[2 .. $#ARGV];
my $name = $ARGV[1] =~ s|.*/||r;

$page =~ s/^\.(Dt|Ev) .*$//gm;
$header =~ s|/\*.*?\*/||gs;

sub plain {
	my ($text) = @_;
	$text =~ s/\s+/ /g;
	$text =~ s/^ | $//g;
	return $text =~ s/ ?(\*+) ?/ $1/gr;
}

# Functions: of the page, .Ft TYPE, .Fo NAME, .Fa "ARGUMENT" each, .Fc
my %prototype;
my ($type, $function, @arguments) = ('');
for (split /\n/, $page) {
	$type = plain($1) if /^\.Ft "?(.*?)"?$/;
	($function, @arguments) = ($1) if /^\.Fo (\w+)/;
	push @arguments, plain($1) if /^\.Fa "(.*)"$/ && $function;
	($prototype{$function} = plain("$type $function") . '(' . join(', ', @arguments) . ')', $function = undef)
		if /^\.Fc/ && $function;
	if (/^\.Fn (\w+) ((?:"[^"]*" ?)+)$/ && $type ne '') {
		my ($called, $list) = ($1, $2);
		$prototype{$called} = plain("$type $called") . '(' . join(', ', map { plain($_) } $list =~ /"([^"]*)"/g) . ')';
	}
	$type = '' if /^\.Sh/;
}
my %seen;
while ($header =~ /^((?:const )?(?:struct )?\w+ \**)(shmlimit_\w+)\(([^;]*?)\)(?: *__attribute__[^;]*)?;/gms) {
	my $want = plain("$1 $2") . '(' . join(', ', map { plain($_) } split /,/, $3) . ')';
	$seen{$2} = 1;
	print "$name: $2 is not in the synopsis\n" if !exists $prototype{$2};
	print "$name: $prototype{$2}: the header has $want\n" if exists $prototype{$2} && $prototype{$2} ne $want;
}
for (sort keys %prototype) {
	print "$name: $_ is not in the header\n" if !$seen{$_};
}

# Structures: .It Vt TYPE Fa MEMBER , MEMBER or, where the types go without saying, .It Fa MEMBER , MEMBER
my (%member, %has);
while ($page =~ /^\.It (?:Vt "?(.*?)"? (?:Ns )?)?Fa (.*)$/gm) {
	my ($of, $names) = ($1 // '', $2);
	$member{plain("$of $_")} = 1 for split / , /, $names;
}
while ($header =~ /^struct (\w+) \{\n(.*?)^\};/gms) {
	my ($structure, $members) = ($1, $2);
	for (map { plain($_) } split /;/, $members) {
		next if $_ eq '';
		$_ = "$1$2" if /^(.*)\( ?\*(\w+)\)\(/;       # a function
		my ($of, @names) = /^(.*?)([\w\[\]]+(?:, ?[\w\[\]]+)*)$/ ? ($1, split(/, ?/, $2)) : die "$structure: $_\n";
		for my $each (@names) {
			my $want = plain("$of $each");
			$has{$want} = $has{$each} = 1;
			print "$name: struct $structure: $want is not described\n" if !$member{$want} && !$member{$each};
		}
	}
}
for (sort keys %member) {
	print "$name: no structure has $_\n" if !$has{$_} && !/^reply\[/;  # which is an argument
}

# Constants
my %constant = map { $_ => 1 } $page =~ /\b(SHMLIMIT_[A-Z0-9_]+)\b/g;
my %defined = map { $_ => 1 } $header =~ /\b(SHMLIMIT_[A-Z0-9_]+)\b/g;
my %elsewhere = map { $_ => 1 } map { local (@ARGV, $/) = $_; <> =~ /\b(SHMLIMIT_[A-Z0-9_]+)\b/g } @others;
for (sort grep { !/_(H|DEPRECATED)$/ } keys %defined) {
	print "$name: $_ is not named\n" if !$constant{$_};
}
for (sort keys %constant) {
	print "$name: the header has no $_\n" if !$defined{$_} && !$elsewhere{$_};
}
