package bench

import (
	"slices"
	"testing"
	"time"
)

// reportRatios reports the median of the ratios of the rounds, how many rounds there were, and their quartiles.
func reportRatios(b *testing.B, unit string, ratios []float64) {
	b.Helper()
	b.ReportMetric(median(ratios), unit)
	b.ReportMetric(float64(len(ratios)), unit+"-rounds")
	b.ReportMetric(quartile(ratios, 1), unit+"-q1")
	b.ReportMetric(quartile(ratios, 3), unit+"-q3")
}

// paired runs both sides in turns, and reports the ratios of the rounds and the median rates.
func paired(b *testing.B, round time.Duration, peer, ours func(until time.Time) int) {
	b.Helper()
	const rounds = 21
	rate := func(run func(time.Time) int) float64 {
		began := time.Now()
		n := run(began.Add(round))
		return float64(n) / time.Since(began).Seconds()
	}
	rate(peer)
	rate(ours)
	var peers, our []float64
	for range rounds {
		peers = append(peers, rate(peer))
		our = append(our, rate(ours))
	}
	for b.Loop() { // the rounds are the loop
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(peers), "peer/s")
	b.ReportMetric(median(our), "ours/s")
	reportRatios(b, "ratio", ratios(our, peers))
}

// alternate runs both sides in turns, times calls per round, and returns how long a call of each took in each round, in seconds.
func alternate(b *testing.B, rounds, times int, peer, ours func() error) (peers, our []float64) {
	b.Helper()
	took := func(run func() error) float64 {
		began := time.Now()
		for range times {
			if err := run(); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(began).Seconds() / float64(times)
	}
	took(peer)
	took(ours)
	for round := range rounds {
		var p, o float64
		if round%2 == 0 {
			p = took(peer)
			o = took(ours)
		} else {
			o = took(ours)
			p = took(peer)
		}
		peers, our = append(peers, p), append(our, o)
	}
	return peers, our
}

// turn is how often a side runs before it is the other's turn, because a worker's claims follow one another. With single calls, each side would pay
// for the pause that the other one made before it sent. On two virtual processors that is 20 µs more for ours.
const turn = 10

// pairs are the times of two sides that ran in turns, and their ratio in each round.
type pairs struct {
	ours, peers []time.Duration // medians of the turns
	ratios      []float64
}

// inTurns runs both sides in a number of rounds, in one order and then in the other.
func (p *pairs) inTurns(b *testing.B, rounds, want int, ours, peer func() (int, error)) {
	b.Helper()
	for round := range rounds {
		var our, other time.Duration
		if round%2 == 0 {
			our = timeTurn(b, want, ours)
			other = timeTurn(b, want, peer)
		} else {
			other = timeTurn(b, want, peer)
			our = timeTurn(b, want, ours)
		}
		p.ours, p.peers, p.ratios = append(p.ours, our), append(p.peers, other), append(p.ratios, float64(our)/float64(other))
	}
}

// timeTurn is the median time of a turn of calls.
func timeTurn(b *testing.B, want int, way func() (int, error)) time.Duration {
	b.Helper()
	took := make([]time.Duration, turn)
	for i := range took {
		began := time.Now()
		n, err := way()
		if err != nil || n != want {
			b.Fatalf("%d rows of %d, %v", n, want, err)
		}
		took[i] = time.Since(began)
	}
	return median(took)
}

// ratios divides round by round.
func ratios(ours, peers []float64) []float64 {
	each := make([]float64, len(ours))
	for i := range ours {
		each[i] = ours[i] / peers[i]
	}
	return each
}

// over divides each time by one time.
func over(times []time.Duration, by time.Duration) []float64 {
	each := make([]float64, len(times))
	for i := range times {
		each[i] = float64(times[i]) / float64(by)
	}
	return each
}

func median[T interface{ ~int64 | ~float64 }](values []T) T {
	values = slices.Clone(values)
	slices.Sort(values)
	return values[len(values)/2]
}

// quartile interpolates between two values if there is none at the quarter.
func quartile(values []float64, nth int) float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	quarters := nth * (len(values) - 1)
	below, rest := quarters/4, quarters%4
	if rest == 0 {
		return values[below]
	}
	return values[below] + (values[below+1]-values[below])*float64(rest)/4
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
