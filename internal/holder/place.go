package holder

import (
	"fmt"

	"github.com/gormlock/gormlock/advisory"
	"github.com/gormlock/gormlock/internal/lockid"
	"github.com/gormlock/gormlock/lockkey"
)

// Place is a key as the server knows it: what excludes whom.
type Place = lockid.ID

// PlaceOf is the place of a key. An invalid key gives its error, and a renamed one has two places.
func PlaceOf(k lockkey.Key) (Place, error) {
	if at, ok := lockid.Of(k); ok {
		return at, nil
	}
	if err := k.Err(); err != nil {
		return Place{}, err
	}
	return Place{}, fmt.Errorf("%w: %s stands for two locks, and this call takes one", advisory.ErrOption, k)
}
