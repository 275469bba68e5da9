# random.pl BUILD N [SEED [SECONDS]]: breaks a copy of the libraries in one place at a time, N times, where SEED says, and
# runs tests until one fails. Prints a line for each mutant, then how many were killed. A mutant that does not compile, or
# whose objects are as before, is replaced by another. Ends early after SECONDS. Fails if one lives.
#
# In the environment: ONLY=PATTERN limits the files; LIST=yes prints what would be drawn, and builds nothing. The same
# seed, pattern and sources draw the same mutants.
#
# SPDX-License-Identifier: BSD-2-Clause
use strict;
use warnings;
use Cwd 'abs_path';
use Time::HiRes 'time';

my ($build, $n, $seed, $seconds) = @ARGV;
my $only = $ENV{ONLY} // '.';
my $source = abs_path($0 =~ s{[^/]*$}{../..}r);
my $folder;
my $make = 'make -s O=build CC=gcc CFLAGS="-O1 -w -Werror=incompatible-pointer-types -Werror=int-conversion ' .
	'-Werror=implicit-function-declaration"';
my $began = time;
$seed ||= time & 0xffffff;
$seconds ||= 3600;
srand $seed;
$| = 1;

if ($ENV{LIST}) {
	chdir $source or die "$source: $!\n";
} else {
	mkdir $build;
	$folder = abs_path($build) . "/mutant.$$";
	system("mkdir -p '$folder/tests' '$folder/bench' '$folder/tools' && cd '$source' && " .
		"cp -R Makefile include lib '$folder/' && cp tools/*.mk '$folder/tools/' && " .
		"cp -R bench/kit '$folder/bench/' && cd tests && cp -R *.h *.mk unit process schedule torture gate global " .
		"'$folder/tests/'") == 0 or die "$folder: the project cannot be copied\n";
	chdir $folder or die "$folder: $!\n";
}
END { local $?; chdir '/'; system('rm', '-rf', $folder) if defined $folder }
$SIG{INT} = $SIG{TERM} = sub { exit 2 };

# Reads or writes a whole file.
sub content {
	my ($file, $text) = @_;
	local $/;
	open my $h, defined $text ? '>' : '<', $file or die "$file: $!\n";
	defined $text ? print $h $text : return <$h>;
}

# ---- Where a file can be broken: [kind, offset, length, text instead] ----

my %instead = ('<' => '<=', '<=' => '<', '>' => '>=', '>=' => '>', '==' => '!=', '!=' => '==', '&&' => '||', '||' => '&&',
	'+' => '-', '-' => '+', '*' => '/', '/' => '*', '%' => '/', '<<' => '>>', '>>' => '<<', '&' => '|', '|' => '&',
	'^' => '|', '+=' => '-=', '-=' => '+=', '|=' => '&=', '&=' => '|=', '++' => '--', '--' => '++');
my $parens = qr/(?<p>\((?:[^()]++|(?&p))*\))/;

sub sites {
	my ($whole) = @_;
	my ($text, @sites) = $whole;
	# Comments, strings, characters and what is for the preprocessor cannot be broken: blanks in their place.
	$text =~ s{(/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^\#(?:[^\n\\]|\\.)*)}{$1 =~ s/[^\n]/\x01/gr}gesmx;
	my $add = sub { push @sites, [@_] };
	while ($text =~ / (<=|>=|==|!=|<|>) /g) { $add->('relational', $-[1], length $1, $instead{$1}) }
	while ($text =~ / (&&|\|\|) /g) { $add->('logical', $-[1], 2, $instead{$1}) }
	while ($text =~ / (\+|-|\*|\/|%|<<|>>|&|\||\^|\+=|-=|\|=|&=) |(\+\+|--)/g) {
		my $at = defined $1 ? $-[1] : $-[2];
		$add->('arithmetic', $at, length($1 // $2), $instead{$1 // $2});
	}
	while ($text =~ /(?<![\w.\x01])(\d+)(?=[uUlL]*(?![\w.]))/g) {
		$add->('constant', $-[1], length $1, $1 + 1);
		$add->('constant', $-[1], length $1, $1 - 1) if $1 > 0;
	}
	while ($text =~ /\b(?:if|while) ($parens)/g) {
		my ($at, $length) = ($-[1], length $1);
		my $is = substr $whole, $at, $length;
		$add->('negation', $at, $length, "(!$is)");
		$add->('dropped check', $at, $length, "(0 && $is)");
		$add->('dropped check', $at, $length, "(1 || $is)");
	}
	# A statement on lines of its own that is an assignment, a call, or a step: no declaration, and no return.
	while ($text =~ /^\t+((?:\(void\))?(?:\*|\+\+|--)?[a-z][\w.>\[\]-]*(?:$parens| ?[-+|&^*\/<>]*= |\+\+|--)[^;{}]*;|break;|continue;)$/mg) {
		$add->('deletion', $-[1], length $1, ';') if $1 !~ /^return\b/;
	}
	while ($text =~ /\b[a-z]\w*\(([^(),;{}\n]+), ([^(),;{}\n]+)(?=[,)])/g) {
		my ($first, $second, $at) = ($1, $2, $-[1]);
		$add->('swap', $at, length("$first, $second"), "$second, $first") if "$first$second" !~ /\x01|\bsizeof\b/;
		pos($text) = $at;
	}
	while ($text =~ /, ([^(),;{}\n]+), ([^(),;{}\n]+)(?=[,)])/g) {
		my ($first, $second, $at) = ($1, $2, $-[1]);
		$add->('swap', $at, length("$first, $second"), "$second, $first") if "$first$second" !~ /[\x01=]|\bsizeof\b/;
		pos($text) = $at;
	}
	return @sites;
}

my %of_kind;
for my $file (sort grep { /$only/ } split /\n/, `find lib -name '*.[ch]'`) {
	push @{ $of_kind{ $_->[0] } }, [$file, @$_] for sites(content($file));
}
my @kinds = sort keys %of_kind;
die "no file can be broken\n" if !@kinds;

# ---- Tests ----

my (%took, %sound, %left_out); # by each test: seconds, and whether it passes where nothing is broken

sub of_groups {
	return map { s/\.c$//r =~ s/^tests\///r } map { glob "tests/$_/*.c" } @_;
}

# Those that a file's change can make fail: first those whose names share a word with the file's, the quick ones first.
sub tests_for {
	my ($file) = @_;
	my @groups = $file =~ /^lib\/gate/ ? 'gate' : $file =~ /^lib\/global/ ? 'global' : qw(unit process gate schedule);
	my @tests = of_groups(@groups);
	push @tests, 'schedule/mailbox' if $file =~ /^lib\/global/;
	push @tests, 'global/share', 'global/take' if $file =~ /lease|fast/ && $file !~ /^lib\/g/;
	my %word = map { $_ => 1 } map { split /_/ } $file =~ /(\w+)\.[ch]$/;
	my %near = map { my $t = $_; $t => scalar grep { $word{$_} } split /[_\/]/, $t } @tests;
	my $n = 0;
	my %place = map { $_ => $n++ / 1000 } @tests;
	return sort { $near{$b} <=> $near{$a} || ($took{$a} // $place{$a}) <=> ($took{$b} // $place{$b}) }
		grep { !$left_out{$_} } @tests;
}

# Builds it and runs it. Returns '' if it passes, and else what fails first.
sub failure {
	my ($test) = @_;
	return 'it cannot be linked' if system("$make build/tests/$test.t >/dev/null 2>&1") != 0;
	my $limit = int(30 + 10 * ($took{$test} // 12));
	my $start = time;
	local $ENV{TEST_SCALE} = $ENV{TEST_SCALE} // ($test =~ /^g/ ? 1 : 0.2);
	my $out = `timeout -k 5 $limit build/tests/$test.t 2>/dev/null </dev/null`;
	if ($? == 0) {
		$took{$test} = time - $start;
		return '';
	}
	return $out =~ /^not ok \d+ - (.*)/m ? $1 : ($? >> 8) == 124 ? 'it does not come to its end' : 'it ends early';
}

sub objects {
	return `find build/lib -name '*.o' | sort | xargs cat | cksum`;
}

sub build {
	return system("$make build/libshmlimit.a build/libshmlimit-global.a build/libshmlimit-gate.a >/dev/null 2>&1") == 0;
}

# The first test that fails with the file as it is, and what fails. One that fails without a mutant too is left out.
sub killer {
	my ($file, $text) = @_;
	my $broken = content($file);
	for my $test (tests_for($file)) {
		my $wrong = failure($test) or next;
		if (!$sound{$test}) {
			content($file, $text);
			$sound{$test} = failure($test) eq '' || failure($test) eq '';
			content($file, $broken);
		}
		return "$test: $wrong" if $sound{$test};
		$left_out{$test} = 1;
		print "# $test fails without a mutant, and is left out: $wrong\n";
	}
	return undef;
}

# ---- Draw, break, build, test ----

$ENV{LIST} || build() or die "the library cannot be built\n";
my $before = $ENV{LIST} ? '' : objects();
my ($killed, $lived, $same, $unbuilt, %drawn) = (0, 0, 0, 0);
while ($killed + $lived < $n && time - $began < $seconds) {
	my $of = $of_kind{ $kinds[int rand @kinds] };
	my ($file, $kind, $at, $length, $new) = @{ $of->[int rand @$of] };
	next if $drawn{"$file $at $new"}++;
	my $text = content($file);
	my $line = 1 + (substr($text, 0, $at) =~ tr/\n//);
	my $broken = $text;
	my $old = substr $broken, $at, $length, $new;
	my $what = "$file:$line $kind: " . (split /\n/, $text)[$line - 1] =~ s/^\s+//r . " ($old => $new)" =~ s/\s+/ /gr;
	if ($ENV{LIST}) {
		print ++$lived, " $what\n";
		next;
	}
	content($file, $broken);
	if (!build()) {
		$unbuilt++;
	} elsif (objects() eq $before) {
		$same++;
	} else {
		my $by = killer($file, $text);
		defined $by ? $killed++ : $lived++;
		printf "%d %s | %s\n", $killed + $lived, $what, defined $by ? "killed by $by" : 'LIVES';
	}
	content($file, $text);
	build() or die "the library cannot be built again\n";
}
exit 0 if $ENV{LIST};
printf "# seed %s: %d of %d killed, %d live; %d more left the code as it was, %d did not compile; %d s\n", $seed, $killed,
	$killed + $lived, $lived, $same, $unbuilt, time - $began;
exit($lived != 0);
