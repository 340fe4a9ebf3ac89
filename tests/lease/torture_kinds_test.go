package lease_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/tests/internal/torture"
)

// faultsOfAll are those that leaders, schedules and slots go through.
func faultsOfAll() []fault {
	all := slices.DeleteFunc(slices.Clone(faults), func(f fault) bool { return f.long || f.pooled || f.skews != nil })
	return append(all, fault{name: "clocks off by two seconds", strike: stopPastTheLease, skews: []string{"2s", "-2s", "0s"}},
		fault{name: "restarted server", strike: func(s *scene) {
			s.Holder()
			if err := s.server.Restart(s.T.Context()); err != nil {
				s.T.Fatal(err)
			}
		}})
}

func torment(t *testing.T, kind string, prepare func(s *scene), check func(s *scene)) {
	t.Helper()
	for _, f := range faultsOfAll() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			s.kind = kind
			if f.skews != nil {
				s.skews = f.skews
			}
			prepare(s)
			s.start(3)
			s.Endure(func() { f.strike(s) })
			check(s)
		})
	}
}

// Never two leaders, and no write of a leader that was superseded.
func TestTorture_leaders(t *testing.T) {
	t.Parallel()
	torment(t, "lead", func(*scene) {}, func(s *scene) { s.Check(between) })
}

// Never more holders than slots, and no write of one whose slot has another holder.
func TestTorture_slots(t *testing.T) {
	t.Parallel()
	torment(t, "slots", func(*scene) {}, func(s *scene) {
		if torture.Semaphore(s.T, s.CheckEvents(between), torture.Registers, between) != porcupine.Ok {
			s.T.Errorf("more than %d hold slots", torture.Registers)
		}
	})
}

// Every tick is done, in order, none is begun after it was done, and no run of a process that was superseded counts.
func TestTorture_schedules(t *testing.T) {
	t.Parallel()
	torment(t, "every", func(s *scene) {
		s.Exec(`CREATE TABLE ran (at bigserial PRIMARY KEY, register int NOT NULL, token bigint NOT NULL, tick timestamptz NOT NULL);
			CREATE TABLE done (at bigint PRIMARY KEY DEFAULT nextval('ran_at_seq'), id bigint NOT NULL, tick timestamptz NOT NULL);
			CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO done (id, tick) VALUES (new.id, new.done_at); RETURN new; END';
			CREATE TRIGGER note AFTER UPDATE ON gormlock_schedule FOR EACH ROW
				WHEN (new.done_at IS DISTINCT FROM old.done_at) EXECUTE FUNCTION note()`)
	}, func(s *scene) {
		s.Check(between)
		conn := pgtest.Conn(s.T, pgtest.Through(s.DSN))
		for what, query := range map[string]string{
			"ticks are missing or twice": `SELECT count(*) FROM (SELECT tick - lag(tick) OVER (PARTITION BY id ORDER BY at) step FROM done) d
				WHERE step <> ` + interval(everyStep),
			"ticks are done out of order":    `SELECT count(*) FROM (SELECT tick, lag(tick) OVER (PARTITION BY id ORDER BY at) earlier FROM done) d WHERE tick <= earlier`,
			"ticks are done that nobody ran": `SELECT count(*) FROM done d WHERE NOT EXISTS (SELECT FROM ran r WHERE r.tick = d.tick AND r.at < d.at)`,
			"ticks were run after they were done": `SELECT count(*) FROM done d JOIN gormlock_schedule s USING (id) JOIN ran r ON r.tick = d.tick
				AND s.name = 'register/' || r.register AND r.at > d.at`,
			"ticks were given up": `SELECT count(*) FROM gormlock_schedule WHERE settled_at <> done_at`,
		} {
			var n int
			if err := conn.QueryRow(s.T.Context(), query).Scan(&n); err != nil || n > 0 {
				s.T.Errorf("%d %s, %v", n, what, err)
			}
		}
		var done, again int
		if err := conn.QueryRow(s.T.Context(), "SELECT (SELECT count(*) FROM done), (SELECT count(*) - count(DISTINCT (register, tick)) FROM ran)").Scan(&done, &again); err != nil || done == 0 {
			s.T.Errorf("%d ticks done, %v", done, err)
		}
		s.T.Logf("%d ticks done, %d run again after a fault", done, again)
	})
}

func interval(d time.Duration) string {
	return "interval '" + strconv.FormatInt(d.Milliseconds(), 10) + " milliseconds'"
}
