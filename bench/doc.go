// Package bench compares gormlock with similar libraries and with bare SQL. It is its own module, so that these libraries never reach users of
// gormlock.
//
//	make bench
//	make bench BENCHFLAGS='-bench Claim'                         # these, and write nothing
//	make bench BENCHFLAGS='-in ../.bin/bench.txt -bench Claim'   # these again, in place of those of the last run
//
// The two sides of a comparison run in turns on the same server in one run, and medians are reported. The ratio is what counts, because the times
// depend on the machine.
package bench
