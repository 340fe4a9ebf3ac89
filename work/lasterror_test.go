package work_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
	"github.com/gormlock/gormlock/work"
)

// If the server has refused an outcome for another reason, the text of its error is stored as it is.
func TestRefused_keepsTheText(t *testing.T) {
	t.Parallel()
	log := pgtest.NewLogger()
	db := openWith(t, pgtest.Plugin(gormlock.New()), pgtest.Config(func(c *gorm.Config) { c.Logger = log }))
	bad := enqueue(t, db, "bad")[0]
	must(t, db.Exec(trigger("NEW.state = 'dead'", raise)).Error)
	const text = `größer als "5"`
	end := start(t, worker(t, db, func(context.Context, *Mail) error { return work.Dead(errors.New(text)) }))
	eventually(t, "the refusal is logged", func() bool { return len(log.Lines()) > 0 })
	must(t, db.Exec(free).Error)
	eventually(t, "it is dead", func() bool { return states(t, db)["dead"] == 1 })
	must(t, end())
	if got := reload(t, db, bad.ID).LastError; got != text {
		t.Errorf("stored %s", got)
	}
}

// A trigger that raises an error about the text does not keep a job from being tried again or taken over.
func TestRefused_textByATrigger(t *testing.T) {
	t.Parallel()
	db := open(t)
	must(t, db.Exec(`CREATE FUNCTION short() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF length(NEW.last_error) > 20 THEN RAISE 'last_error is too long'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER short BEFORE UPDATE ON mails FOR EACH ROW EXECUTE FUNCTION short()`).Error)
	enqueue(t, db, "fails", "of a dead worker")
	must(t, db.Exec("UPDATE mails SET state = 'running', attempts = 1, claimed_by = 'x', claimed_until = now() - interval '1 s' WHERE text = 'of a dead worker'").Error)
	drain(t, worker(t, db, func(_ context.Context, m *Mail) error {
		if m.Text == "fails" && m.Attempts == 1 {
			return errors.New(strings.Repeat("long ", 30))
		}
		return nil
	}, work.Backoff(func(int) time.Duration { return 0 })))
	if n := states(t, db)["done"]; n != 2 {
		t.Errorf("%v", states(t, db))
	}
}

// Letters that the encoding of the database lacks are stored in ASCII.
func TestRefused_textInAnotherEncoding(t *testing.T) {
	t.Parallel()
	server := pgtest.Fresh(t)
	admin := pgtest.Conn(t, pgtest.Through(server.DSN("postgres")))
	_, err := admin.Exec(t.Context(), "CREATE DATABASE in_latin1 TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
	must(t, err)
	db := pgtest.Open(t, pgtest.Through(server.DSN("in_latin1")), pgtest.Param("client_encoding", "UTF8"), pgtest.Plugin(gormlock.New()))
	must(t, work.Migrate(db, &Mail{}))
	mails := enqueue(t, db, "a", "b")
	says := map[string]string{"a": `„Ω“ "`, "b": `"größer"`}
	drain(t, worker(t, db, func(_ context.Context, m *Mail) error { return work.Dead(errors.New(says[m.Text])) }))
	for i, want := range []string{`\u201e\u03a9\u201c \"`, `"größer"`} {
		if got := reload(t, db, mails[i].ID).LastError; got != want {
			t.Errorf("stored %s, want %s", got, want)
		}
	}
}
