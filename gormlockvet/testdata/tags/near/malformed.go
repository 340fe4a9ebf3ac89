//go:build unvetted

package near

// Malformed has tags that cannot be read, as go vet says too.
type Malformed struct {
	ID int64
	A  int64 `gormlock: "version"`         // want `this tag cannot be read, so nobody sees it`
	B  int64 `gormlock:version`            // want `this tag cannot be read`
	C  int64 `json:"c" gormlock='version'` // want `this tag cannot be read`
}
