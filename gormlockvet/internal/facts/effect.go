package facts

// Effect is something that a function does outside of the database.
type Effect struct {
	Kind  EffectKind
	What  string // as it is called: net/http.Post
	Depth int    // how many calls away
}

// EffectKind is what an effect is for those who wait for it, or for a second run.
type EffectKind uint8

// The kinds.
const (
	Network EffectKind = iota + 1 // a request to somebody else
	Answer                        // a part of the answer to a request
	File                          // a change of a file
	Sleep
	Wait         // for a channel
	OtherProgram // is run, and waited for
)
