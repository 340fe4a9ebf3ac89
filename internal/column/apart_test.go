package column

import "testing"

// What a child proposes in place of its version tells which version it is, and is never 0, which a CHECK may forbid.
func TestApart_isAnotherVersionOfTheColumn(t *testing.T) {
	t.Parallel()
	for _, initial := range []int64{0, 1} {
		for _, largest := range []int64{127, 255, 32767, 65535} {
			c := &Version{kind: integerVersion, Initial: initial, Largest: largest}
			from := map[int64]int64{}
			for n := initial; n <= largest; n++ {
				apart, ok := c.Apart(Value{N: n})
				if !ok || apart.N == n || apart.N < initial || apart.N > largest {
					t.Errorf("of %d to %d: %d", n, largest, apart.N)
				}
				if other, is := from[apart.N]; is {
					t.Errorf("of %d and %d: %d", other, n, apart.N)
				}
				from[apart.N] = n
				if distance := max(apart.N-n, n-apart.N); distance < c.Far()/2 {
					t.Errorf("of %d: %d is near", n, apart.N)
				}
			}
		}
	}
}
