# english.pl SOURCE: which texts use a phrase that has been struck out, and which documents have a link that leads nowhere.
# Texts are Markdown files, manual pages, public headers, and the comments of all source files.
# Prints a line for each finding.
# Besides: which titles of tests begin as a part of the sentence before, since one that fails is read alone; and which
# identifiers of C, and names of files, have a word that stands for something else.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;

use File::Find;

my ($source) = @ARGV;
chdir $source or die "$source: $!\n";

# A process, caller or host is "it", and a "who" has somebody that it stands for. One word stands for one thing.
my @struck = (
	[qr/\b(?:he|him|his|himself)\b/i, 'it, its'],
	[qr/(?:^|[.;:(] |\b(?:for|to|of|by|as|than|but|from|with|and|so|if|that|let|let's|says?|tells?|is|are|where|while|until) )who (?!am|is|are|was|were|else|can do)\w/i,
		'a caller that, a process that'],
	[qr/\bwho(?:ever|mever|soever)\b/i, 'any process that'],
	[qr/\banew\b/i, 'again'],
	[qr/\b(?:is|was|are|were) told\b/i, 'what is passed, set or reported'],
	[qr/\bso many\b/i, 'the number'],
	[qr/\bthe (?:table|one) before\b/i, 'the old table'],
	[qr/\b(?:who looks in|looking in)\b/i, 'introspection'],
	[qr/\bit is said\b/i, 'the name of what says it'],
	[qr/\bstands there\b/i, 'the name of the thing'],
	[qr/\bby how deep\b/i, 'by how far over the limit'],
	[qr/\bfills? (?:\w+ )?funnels up\b|\bfunnels? (?:is|are) filled up\b/i, 'restore all tokens'],
	[qr/\bleak(?:s|ed|ing)?\b/i, 'refill'],
	[qr/\btime to fill\b/i, 'time to full'],
	[qr/\blapse[sd]?\b(?!;)/i, 'expire'],
	[qr/\btwins?\b/i, 'variant, duplicate'],
	[qr/(?<![*])\bfleets\b/i, 'cluster'],
	[qr/\bthose who write rules\b/i, 'the writers of rules'],
	[qr/\bmeanwhile\b/i, 'during what, or since when'],
);

# Besides, in all comments:
my @named = (
	[qr/(?<!user )\b(?:some|no|any|every)body\b/i, 'another process, no process, no caller'],
	[qr/\bbut for\b/i, 'except'],
);

# As parts of identifiers of C and of the names of files; the last two of files alone: a slot is live, a key was asked for.
my %renamed = (wish => 'rule_spec', creation => 'segment_options', replacement => 'atomic_file', scratch => 'temp_segment',
	sore => 'failed_key', trouble => 'backend_error', attachment => 'segment_ref', bundle => 'multi_take',
	repeats => 'log_once', leak => 'refill', leaked => 'refilled', carry => 'migrate', lapse => 'expire',
	twin => 'duplicate', twins => 'duplicates');
my %renamed_files = (%renamed, live => 'what it is about', asked => 'what it is about');

my (@documents, @sources);
find({ no_chdir => 1, wanted => sub {
	$File::Find::prune = 1 if $File::Find::name =~ m{^\./(?:build\w*|\.\w.*|bench/results)$|/(?:node_modules|__pycache__)$};
	my $name = $File::Find::name =~ s{^\./}{}r;
	return if !-f $_;
	print "$name: write: $_\n" for map { $renamed_files{lc $_} // () } split /[^A-Za-z]+/, $name =~ s{.*/}{}r;
	if ($name =~ /\.(?:md|[1-8])$/ || $name =~ m{^include/.*\.h$}) {
		push @documents, $name;
	} elsif ($name =~ /\.(?:c|h|sh|inc|pml|py|php|rb|rbs|js|ts|lua)$/) {
		push @sources, $name;
	}
} }, '.');

for my $document (sort @documents) {
	open my $in, '<', $document or die "$document: $!\n";
	my (@found, $code);

	while (my $line = <$in>) {
		$code = !$code if $document =~ /\.md$/ && $line =~ /^```/;
		next if $line =~ /^\.(?:\\"|It (?:Vt|Li) )/ || $code;    # a comment, a member's name, a program
		(my $prose = $line) =~ s/^[ \t]*\*? *//;
		for (@struck) {
			my ($phrase, $instead) = @$_;
			push @found, sprintf("%s:%d: \"%s\": write: %s\n", $document, $., $& =~ s/^[^\w]+//r, $instead) if $prose =~ $phrase;
		}
		if ($document =~ /\.md$/) {
			for ($line =~ /\]\(([^)\s]+)\)/g) {
				my ($path, $heading) = /^([^#]*)(?:#(.*))?$/;
				next if /^\w+:/;
				my $at = $path eq '' ? $document : ($document =~ s{[^/]*$}{}r) . $path;
				if (!-e $at) {
					print "$document:$.: link to $_: no such file\n";
				} elsif (defined $heading && $at =~ /\.md$/) {
					print "$document:$.: link to $_: no such heading\n" if !grep { $_ eq $heading } headings($at);
				}
			}
		}
	}
	print @found;
}

for my $source (sort @sources) {
	open my $in, '<', $source or die "$source: $!\n";
	my ($hash, $strings, @found, $docstring) = ($source =~ /\.(?:sh|inc|py|rb|rbs)$/, $source =~ /\.py$/);

	while (my $line = <$in>) {
		my $quotes = $strings ? () = $line =~ /"""/g : 0;
		my $prose = $docstring || $quotes ? $line : $source =~ /\.lua$/ ? ($line =~ /(?:^|\s)--(.*)/)[0] : $hash ? ($line =~ /(?:^|\s)#(.*)/)[0] :
			($line =~ m{^\s*/?\*+(?=[\s/]|$)(.*)})[0] // ($line =~ m{(?:/\*|(?<!:)//)(.*)})[0];
		$docstring = !$docstring if $quotes % 2;
		push @found, identifiers($source, $., $line) if $source =~ /\.[ch]$/;
		for (@struck, @named) {
			my ($phrase, $instead) = @$_;
			push @found, sprintf("%s:%d: \"%s\": write: %s\n", $source, $., $& =~ s/^[^\w]+//r, $instead)
				if defined $prose && $prose =~ $phrase;
		}
	}
	print @found;
}

my $begins = qr/(and|so|which|who|nor|then|but|or|neither|until|also|\.\.\.)/;
my @tests;
find({ no_chdir => 1, wanted => sub { push @tests, $_ if m{/\w+\.(?:c|h|sh|inc|php|py|lua)$} } }, grep { -d } 'tests', glob '*/*/tests');
for my $test (sort @tests) {
	open my $in, '<', $test or die "$test: $!\n";
	while (my $line = <$in>) {
		next if $line =~ /\bprintf |\bis_wrong\(|^\s*\{|^\w+=|^[\w.\/]+:\d+: /;    # what a program says, and not what is expected
		print "$test:$.: title begins with \"$1\": write a whole sentence\n"
			if $test !~ /\.py$/ && $line =~ /"(?:\$\w+: |%s: )?$begins [^"]*"/ ||
			$test =~ /\.php$/ && $line =~ /'$begins [^']*'\)?[;,]/ || $test =~ /\.py$/ && $line =~ /"""$begins /;
	}
}

sub identifiers {
	my ($source, $number, $line) = @_;
	return if $line =~ m{^\s*\*+(?:[\s/]|$)};    # inside of a comment
	my $code = $line =~ s/"(?:\\.|[^"\\])*"//gr =~ s{(?:/\*|//).*}{}r;
	my %words = map { $_ => 1 } map { split /_/ } $code =~ /\b[A-Za-z_]\w*/g;
	return map { "$source:$number: \"$_\": write: $renamed{lc $_}\n" } grep { $renamed{lc $_} } sort keys %words;
}

sub headings {
	my ($file) = @_;
	local $.;    # the caller reports its own line
	open my $text, '<', $file or die "$file: $!\n";
	return map { s/^#+ *//r =~ s/\n//r =~ tr/A-Z /a-z-/r =~ s/[^a-z0-9_-]//gr } grep { /^#/ } <$text>;
}
