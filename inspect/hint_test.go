package inspect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/gormlock/gormlock/internal/pgtest"
)

// chained is a transaction that holds a row, and sessions that queue for it.
type chained struct {
	tx     *pgx.Conn
	queue  []*pgx.Conn
	finish []func()
}

// queueBehind returns a transaction of the first program, and a session of each other program in the queue for its row.
func queueBehind(t *testing.T, apps ...string) *chained {
	t.Helper()
	c := &chained{}
	for i, app := range apps {
		conn := pgtest.Conn(t, pgtest.Schema(), pgtest.Param("application_name", app))
		if i == 0 {
			accounts(t, conn)
			run(t, conn, "BEGIN; UPDATE accounts SET balance = 1 WHERE id = 1")
			c.tx = conn
			continue
		}
		c.finish = append(c.finish, begin(t, conn, "UPDATE accounts SET balance = 2 WHERE id = 1"))
		c.queue = append(c.queue, conn)
	}
	return c
}

func (c *chained) end(t *testing.T) {
	t.Helper()
	run(t, c.tx, "ROLLBACK")
	for _, finish := range c.finish {
		finish()
	}
}

// A program also waits for itself if others are before it in the queue.
func TestSnapshot_hintsThroughOthersInTheQueue(t *testing.T) {
	t.Parallel()
	const itself = "probably db used in place of tx: "
	for name, c := range map[string]struct {
		apps []string // the transaction's, then those of the queue
		want []string // the hints of the queue: TX is the transaction, FIRST the first of the queue
	}{
		"another program first":   {[]string{"shop", "billing", "shop"}, []string{"", itself + "behind FIRST it waits for TX, which belongs to the same program and is idle in transaction"}},
		"the program itself":      {[]string{"shop", "shop"}, []string{itself + "TX belongs to the same program and is idle in transaction"}},
		"nothing has a name":      {[]string{"", "billing", ""}, []string{"", "probably db used in place of tx, or another program here that sets no application_name either: behind FIRST it waits for TX, which is idle in transaction"}},
		"neither has a name":      {[]string{"", ""}, []string{"probably db used in place of tx, or another program here that sets no application_name either: TX is idle in transaction"}},
		"others before and after": {[]string{"shop", "billing", "stock"}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := queueBehind(t, c.apps...)
			v := snapshot(t, pgtest.SQLDB(t))
			_, address := serve(t, pgtest.DSN(t))
			_, shown := get(t, address)
			for i, waiter := range queue.queue {
				l := waitOf(t, v, waiter)
				want, about := c.want[i], 0
				if want != "" {
					want, about = strings.NewReplacer("TX", fmt.Sprint(pid(queue.tx)), "FIRST", fmt.Sprint(pid(queue.queue[0]))).Replace(want), pid(queue.tx)
				}
				if !strings.Contains(shown, want) {
					t.Errorf("%q is not on the page", want)
				}
				if l.Hint != want || l.HintPID != about {
					t.Errorf("the hint of %d is %q about %d, want %q about %d", i+1, l.Hint, l.HintPID, want, about)
				}
			}
			queue.end(t)
		})
	}
}
