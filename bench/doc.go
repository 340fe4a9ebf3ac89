// Package bench measures gormlock beside its peers and beside bare SQL. It is a module of its own, so that what it
// compares with never reaches who uses gormlock.
//
//	make bench
//	make bench BENCHFLAGS='-bench Claim'                         # these, and write nothing
//	make bench BENCHFLAGS='-in ../.bin/bench.txt -bench Claim'   # these again, in place of those of the last run
//
// What is compared runs in turns on the same server in one run, and medians are reported: the ratio is what counts, the
// times belong to the machine.
package bench
