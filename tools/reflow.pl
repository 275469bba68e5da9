# reflow.pl [--check] FILE...: breaks the comments of C files that have a line beyond 100 columns. A paragraph is filled; what is
# indented, or is a list or a table, stays as it is. With --check it changes nothing, and names each line of the rest that is wider.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

my $most = 100;
my $check = @ARGV && $ARGV[0] eq '--check' && shift;

# How wide a line is, where a tab goes to the next multiple of 8.
sub width {
	my $line = shift;
	1 while $line =~ s/\t/' ' x (8 - $-[0] % 8)/e;
	return length $line;
}

sub fill {
	my ($prefix, @words) = @_;
	my @lines = ($prefix . shift @words);
	for (@words) {
		if (width("$lines[-1] $_") > $most) {
			push @lines, "$prefix$_";
		} else {
			$lines[-1] .= " $_";
		}
	}
	return @lines;
}

# Breaks the lines of a comment's text, which are passed without the comment's marks.
sub broken {
	my ($prefix, @text) = @_;
	my (@out, @paragraph);
	my $flush = sub {
		push @out, grep({ width("$prefix$_") > $most } @paragraph) ? fill($prefix, map { split } @paragraph) : map { "$prefix$_" } @paragraph;
		@paragraph = ();
	};
	for (@text) {
		if (/^\S/ && !/^(?:[-*+|]|\d+\.) /) {
			$flush->() if /^-E[A-Z]+: /;
			push @paragraph, $_;
		} else {
			$flush->();
			push @out, ((/^\t/ ? $prefix =~ s/ $//r : $prefix) . $_) =~ s/\s+$//r;
		}
	}
	$flush->();
	return @out;
}

my $wide = 0;
for my $file (@ARGV) {
	open my $in, '<', $file or die "$file: $!\n";
	chomp(my @lines = <$in>);
	my $was = "@lines";
	my @out;
	while (@lines) {
		my $line = shift @lines;
		my ($indent, $first) = $line =~ m{^(\s*)/\*(?: (.*)|)$} or push(@out, $line), next;
		my $number = @out + 1;
		my @block = $line;
		push @block, shift @lines until $block[-1] =~ m{\*/} || !@lines;
		if ($block[-1] !~ m{\*/$} || !grep { width($_) > $most } @block) {
			push @out, @block;
			next;
		}
		if ($check) {
			for (grep { width($block[$_]) > $most && $block[$_] !~ /^\s*\*(?:\s{2,}|\t| [-*+|] | \d+\. )/ } 0 .. $#block) {
				print "$file:", $number + $_, ": a comment has ", width($block[$_]), " columns: make format breaks it\n";
				$wide++;
			}
			push @out, @block;
			next;
		}
		my @text = map { s{^\s*/?\*+ ?}{}r } @block;
		$text[-1] =~ s{\s*\*/$}{};
		$text[-1] = '' if $text[-1] eq '/';
		shift @text while @text && $text[0] eq '';
		pop @text while @text && $text[-1] eq '';
		push @out, "$indent/*", broken("$indent * ", @text), "$indent */";
	}
	next if $check || "@out" eq $was;
	open my $to, '>', $file or die "$file: $!\n";
	print $to map { "$_\n" } @out;
	close $to or die "$file: $!\n";
}
exit($wide > 0);
