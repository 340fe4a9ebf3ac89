package wiretap

import (
	"strings"
	"testing"
)

// Each script is a conversation: what the client sends is in capitals after ">",
// what the server sends after "<". "^" is a message that was sent before the client
// could see the answer in front of it.
func TestExchange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		trips  int
		open   bool
	}{
		"a query":                                 {">Q <T <D <C <Z", 1, false},
		"a query not answered":                    {">Q <T <D <C", 1, true},
		"two queries":                             {">Q <C <Z >Q <C <Z", 2, false},
		"two queries at once":                     {">Q >Q <C <Z <C <Z", 1, false},
		"a query behind one already answered":     {">Q <C <Z ^Q <C <Z", 1, false},
		"a query after one sent ahead":            {">Q <C <Z ^Q <C <Z >Q <C <Z", 2, false},
		"prepare, then execute":                   {">P >D >S <1 <t <T <Z >B >D >E >S <2 <T <D <C <Z", 2, false},
		"two Syncs at once":                       {">P >S >B >E >S <1 <Z <2 <C <Z", 1, false},
		"answers before the Sync is sent":         {">B >E <2 <D <C >S <Z", 1, false},
		"answers before the Flush is sent":        {">B >E <2 <D <s >H >E >S <C <Z", 1, false},
		"an error in a query":                     {">Q <E <Z >Q <C <Z", 2, false},
		"an error, the rest is discarded":         {">P >B >E >S <E <Z >Q <C <Z", 2, false},
		"an error, then a pipelined Sync":         {">P >B >E >S >B >E >S <E <Z <2 <C <Z", 1, false},
		"an error before the Sync is sent":        {">P <E >B >E >S <Z", 1, false},
		"an error before a Query that is skipped": {">P <E >Q >S <Z", 1, false},
		"Flush":                                    {">P >D >H <1 <t <n >B >E >S <2 <C <Z", 2, false},
		"Flush, then Sync alone":                   {">P >H <1 >S <Z", 2, false},
		"Flush and Sync at once":                   {">P >H >S <1 <Z", 1, false},
		"Flush of nothing":                         {">H >Q <C <Z", 1, false},
		"Flush, an error":                          {">P >H <E >S <Z", 1, false},
		"Flush, rows in portions":                  {">B >E >H <2 <D <s >E >H <D <C >S <Z", 3, false},
		"Close":                                    {">C >S <3 <Z", 1, false},
		"an empty query":                           {">Q <I <Z >P >B >E >S <1 <2 <I <Z", 2, false},
		"several statements in a query":            {">Q <C <T <D <C <C <Z", 1, false},
		"a function call":                          {">F <V <Z >F <E <Z", 2, false},
		"notices and notifications":                {"<N <A >Q <N <C <A <Z <S <A", 1, false},
		"the end of the server":                    {"<E", 0, false},
		"Terminate":                                {">Q <C <Z >X", 1, false},
		"copy in":                                  {">Q <G >d >d >c <C <Z >Q <C <Z", 2, false},
		"copy in, data sent at once":               {">Q >d >d >c <G <C <Z >Q <C <Z", 2, false},
		"copy in, given up":                        {">Q <G >d >f <E <Z >Q <C <Z", 2, false},
		"copy in, refused while data comes":        {">Q >d <E <Z >d >c >Q <C <Z", 2, false},
		"copy out":                                 {">Q <H <d <d <c <C <Z", 1, false},
		"extended copy in":                         {">P >B >E >S <1 <2 <G >d >c >S <C <Z >Q <C <Z", 2, false},
		"extended copy in, Sync counts for none":   {">P >B >E >S <1 <2 <G >d >S >H >d >c <C", 1, true},
		"extended copy in, sent at once":           {">B >E >S >d >c >S <2 <G <C <Z >Q <C <Z", 2, false},
		"extended copy in, an error":               {">B >E >S <2 <G >d <E >d >c >S <Z >Q <C <Z", 2, false},
		"extended copy in, an error, sent at once": {">B >E >S >d >c >S <2 <G <E <Z >Q <C <Z", 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var x exchange
			trips, offset := 0, int64(0)
			for _, step := range strings.Fields(c.script) {
				switch step[0] {
				case '>', '^':
					if step[0] == '^' {
						x.ahead = offset + 1
					}
					if x.sent(step[1], offset) {
						trips++
					}
					offset += 5
				case '<':
					x.answered(step[1])
				}
			}
			if trips != c.trips || x.open != c.open {
				t.Errorf("%s: %d round trips, open %v, want %d, %v; waiting %q", c.script, trips, x.open, c.trips, c.open, x.waiting)
			}
		})
	}
}
