package interop

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
	"github.com/gormlock/gormlock/internal/pgtest"
)

// What docs/migrating-from-rails.md says beside the rules of TestRails, with a real ActiveRecord.
func TestRailsGuide(t *testing.T) {
	t.Parallel()
	eachShared(t, startRails(t), map[string]func(*testing.T, shared){
		"a lock_version as the page declares it":            guideModel,
		"a reload keeps the version where it became NULL":   guideReload,
		"touch_all, and deletes":                            guideBulk,
		"isolation levels":                                  guideIsolation,
		"nested transactions":                               guideNested,
		"errors of locks":                                   guideLockErrors,
		"errors of deadlocks":                               guideDeadlocks,
		"errors of serialization":                           guideSerialization,
		"the trigger, and writers that mean to keep it":     guideTrigger,
		"the trigger is dropped":                            guideTriggerDropped,
		"Solid Queue takes nothing that Go holds, and back": guideSolidQueue,
		"AutoMigrate changes the tables of Rails":           guideAutoMigrate,
	})
}

type guideAccount struct {
	ID          int64
	Balance     int64
	LockVersion int32 `gorm:"not null;default:0" gormlock:"version,rails"`
}

func (guideAccount) TableName() string { return "accounts" }

func guideModel(t *testing.T, s shared) {
	a := guideAccount{Balance: 100}
	must(t, s.db.Create(&a).Error)
	equal(t, "stored", s.version(t, a.ID), sql.NullInt32{Valid: true})
	s.rails.load(t, a.ID)
	s.rails.run(t, "@a.update!(balance: 90)")
	mustStale(t, s.db.Model(&a).Update("balance", 80).Error)
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Model(&a).Update("balance", 80).Error)
	s.rails.stale(t, "@a.update!(balance: 70)", "update")
	must(t, s.db.Exec("UPDATE accounts SET lock_version = 2147483647").Error)
	must(t, s.db.First(&a, a.ID).Error)
	if err := s.db.Model(&a).Update("balance", 1).Error; err == nil || !strings.Contains(err.Error(), "2147483647 is the largest") {
		t.Error(err)
	}
}

// GORM leaves a field alone whose column is NULL: a limit that the page names, with its cure.
func guideReload(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Model(&a).Update("balance", 1).Error)
	must(t, s.db.Exec("UPDATE accounts SET lock_version = NULL").Error)
	err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		must(t, tx.First(&a, a.ID).Error)
		return tx.Model(&a).Update("balance", 2).Error
	}, gormlock.Attempts(3))
	mustStale(t, err)
	must(t, gormlock.Transaction(s.db, func(tx *gorm.DB) error { // which leaves nothing behind
		must(t, gormlock.LockRow(tx, &a))
		return tx.Model(&a).Update("balance", 2).Error
	}))
	s.rails.run(t, "@a.reload.update!(balance: 3)")
	must(t, s.db.Exec("UPDATE accounts SET lock_version = NULL").Error)

	a, err = gorm.G[account](s.db).Where("id = ?", a.ID).First(t.Context())
	must(t, err)
	must(t, s.db.Model(&a).Update("balance", 4).Error)
	equal(t, "balance", s.row(t, a.ID).Balance, 4)
	s.mustHave(t, a.ID, "new", 1)
}

func guideBulk(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Model(&account{}).Where("balance = 100").Update("updated_at", s.db.NowFunc()).Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")
	s.mustHave(t, a.ID, "new", 1)
	must(t, s.db.First(&a, a.ID).Error)
	s.rails.run(t, `Account.where(id: @a.id).update_all(["name = ?", 'unseen'])`)
	s.mustHave(t, a.ID, "unseen", 1)

	s.rails.run(t, "@a.reload; Account.where(id: @a.id).touch_all")
	mustStale(t, s.db.Unscoped().Delete(&a).Error)
	must(t, s.db.Unscoped().Clauses(gormlock.IgnoreVersion()).Delete(&a).Error)
	s.rails.stale(t, "@a.update!(name: 'rails')", "update")

	b, old := s.account(t), account{}
	must(t, s.db.First(&old, b.ID).Error)
	must(t, s.db.Model(&b).Update("name", "go").Error)
	s.rails.run(t, "@a.delete") // stale, and says nothing
	left := int64(0)
	if s.rails.atLeast(t, "7.0.6") {
		left = 1
	}
	equal(t, "rows", s.rails.number(t, "Account.count"), left)
	s.rails.run(t, "Account.delete(@a.id)")
	mustBeGone(t, s.db.Model(&b).Update("name", "lost").Error)

	c, d := s.account(t), s.account(t)
	s.rails.run(t, "@a.touch")
	mustStale(t, s.db.Unscoped().Delete([]*account{&c, &d}).Error)
	equal(t, "all or none", s.rails.number(t, "Account.count"), 2)
}

func guideIsolation(t *testing.T, s shared) {
	must(t, gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		var level string
		must(t, tx.Raw("SHOW transaction_isolation").Scan(&level).Error)
		equal(t, "level", level, "serializable")
		err := gormlock.Transaction(tx, func(*gorm.DB) error { return nil }, gormlock.Isolation(sql.LevelSerializable))
		if !errors.Is(err, gormlock.ErrOption) {
			t.Error(err)
		}
		return nil
	}, gormlock.Isolation(sql.LevelSerializable)))
	_ = s.rails.raises(t, "Account.transaction { Account.create!; Account.transaction(isolation: :serializable) { } }", "ActiveRecord::TransactionIsolationError")
}

func guideNested(t *testing.T, s shared) {
	const nested = `Account.transaction do
		Account.create!(name: 'outer')
		Account.transaction(%s) { Account.create!(name: 'inner'); raise ActiveRecord::Rollback }
	end`
	s.rails.run(t, fmt.Sprintf(nested, ""))
	equal(t, "joined: nothing is rolled back", s.rails.number(t, "Account.count"), 2)
	s.rails.run(t, "Account.delete_all;"+fmt.Sprintf(nested, "requires_new: true"))
	equal(t, "a savepoint", value[[]string](t, s.rails, "Account.pluck(:name)")[0], "outer")
	equal(t, "rows", s.rails.number(t, "Account.count"), 1)

	own := errors.New("rolled back")
	must(t, gormlock.Transaction(s.db, func(tx *gorm.DB) error {
		must(t, tx.Create(&account{Name: "outer in go"}).Error)
		err := gormlock.Transaction(tx, func(tx *gorm.DB) error {
			must(t, tx.Create(&account{Name: "inner"}).Error)
			return own
		})
		if !errors.Is(err, own) {
			t.Error(err)
		}
		return nil
	}))
	equal(t, "rows", s.rails.number(t, "Account.count"), 2)
	equal(t, "inner", s.rails.number(t, "Account.where(name: 'inner').count"), 0)
}

// mustRetry wants an error that another run can cure, of this kind or with this SQLSTATE.
func mustRetry(t *testing.T, err, kind error, state string) {
	t.Helper()
	if !gormlock.IsRetryable(err) || kind != nil && !errors.Is(err, kind) || state != "" && stateOf(err) != state {
		t.Errorf("got %v, want %v or %s, and a retry to cure it", err, kind, state)
	}
}

func guideLockErrors(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Transaction(func(tx *gorm.DB) error {
		must(t, gormlock.LockRow(tx, &a))
		_ = s.rails.raises(t, "Account.transaction { @a.lock!('FOR UPDATE NOWAIT') }", "ActiveRecord::LockWaitTimeout")
		_ = s.rails.raises(t, "Account.transaction { sql(%q{SET LOCAL lock_timeout = '20ms'}); @a.lock! }", "ActiveRecord::LockWaitTimeout")
		_ = s.rails.raises(t, "Account.transaction { sql(%q{SET LOCAL statement_timeout = '20ms'}); @a.lock! }", "ActiveRecord::QueryCanceled")
		for what, want := range map[string]struct {
			set       string
			kind      error
			state     string
			retryable bool
			write     func(tx *gorm.DB) error
		}{
			"Try":              {"", gormlock.ErrNotAcquired, "", false, func(tx *gorm.DB) error { return gormlock.LockRow(tx, &account{ID: a.ID}, gormlock.Try()) }},
			"lock_timeout":     {"lock_timeout", gormlock.ErrLockTimeout, "55P03", false, func(tx *gorm.DB) error { return gormlock.LockRow(tx, &account{ID: a.ID}) }},
			"of a statement":   {"lock_timeout", nil, "55P03", false, func(tx *gorm.DB) error { return tx.Exec("UPDATE accounts SET name = 'x'").Error }},
			"a statement ends": {"statement_timeout", nil, "57014", false, func(tx *gorm.DB) error { return tx.Exec("UPDATE accounts SET name = 'x'").Error }},
		} {
			err := s.db.Transaction(func(tx *gorm.DB) error {
				if want.set != "" {
					must(t, tx.Exec("SET LOCAL "+want.set+" = '20ms'").Error)
				}
				return want.write(tx)
			})
			if gormlock.IsRetryable(err) != want.retryable || want.kind != nil && !errors.Is(err, want.kind) || want.state != "" && stateOf(err) != want.state {
				t.Errorf("%s: %v", what, err)
			}
		}
		return nil
	}))
	_ = s.rails.raises(t, "Account.find(0).lock!", "ActiveRecord::RecordNotFound")
	err := s.db.Transaction(func(tx *gorm.DB) error { return gormlock.LockRow(tx, &account{ID: 999}) })
	if !errors.Is(err, gorm.ErrRecordNotFound) || gormlock.IsRetryable(err) {
		t.Error(err)
	}
}

// guideDeadlocks lets each side meet the other's lock while it holds one: whoever looks first is told.
func guideDeadlocks(t *testing.T, s shared) {
	a, b := s.account(t), s.account(t)
	pid := int(s.rails.number(t, "sql('SELECT pg_backend_pid()')"))
	for _, victim := range []string{"go", "rails"} {
		patience := map[string]string{"go": "1h", "rails": "1h", victim: "10ms"}
		s.rails.run(t, fmt.Sprintf("@b = Account.find(%d); @c = Account.find(%d); sql(%%q{SET deadlock_timeout = '%s'})", a.ID, b.ID, patience["rails"]))
		s.rails.run(t, "Account.connection.begin_transaction(joinable: false); @b.lock!")
		var done <-chan error
		err := gormlock.Transaction(s.db, func(tx *gorm.DB) error {
			must(t, tx.Exec("SET LOCAL deadlock_timeout = '"+patience["go"]+"'").Error)
			must(t, gormlock.LockRow(tx, &b))
			if victim == "go" {
				done = s.rails.start("@c.lock!")
				pgtest.WaitBackendBlocked(t, pid)
				return gormlock.LockRow(tx, &a)
			}
			var own int
			must(t, tx.Raw("SELECT pg_backend_pid()").Scan(&own).Error)
			told := make(chan error, 1)
			done = told
			go func() {
				pgtest.WaitBackendBlocked(t, own)
				told <- s.rails.value("@c.lock!", nil)
			}()
			return gormlock.LockRow(tx, &a)
		})
		told := <-done
		if victim == "go" {
			mustRetry(t, err, nil, "40P01")
			must(t, told)
		} else {
			must(t, err)
			var e *railsError
			if !errors.As(told, &e) || e.Class != "ActiveRecord::Deadlocked" {
				t.Errorf("Rails: %v", told)
			}
		}
		s.rails.run(t, "Account.connection.rollback_transaction; nil")
	}
}

func guideSerialization(t *testing.T, s shared) {
	a := s.account(t)
	for what, write := range map[string]func(tx *gorm.DB) error{
		"versioned": func(tx *gorm.DB) error { return tx.Model(&a).Update("name", "go").Error },
		"raw SQL":   func(tx *gorm.DB) error { return tx.Exec("UPDATE accounts SET name = 'go'").Error },
	} {
		err := s.db.Transaction(func(tx *gorm.DB) error {
			must(t, tx.First(&a, a.ID).Error) // the snapshot
			s.rails.run(t, "@a.reload.touch")
			return write(tx)
		}, &sql.TxOptions{Isolation: sql.LevelSerializable})
		kind := map[string]error{"versioned": gormlock.ErrStale}[what]
		mustRetry(t, err, kind, "40001")
	}
}

func guideTrigger(t *testing.T, s shared) {
	must(t, s.db.Exec(gormlock.VersionTrigger("accounts", "lock_version")).Error)
	a := s.account(t)
	s.rails.run(t, "@a.update_columns(name: 'rails')")
	s.rails.stale(t, "@a.update!(name: 'again')", "update")
	s.rails.run(t, "@a.reload.update_column(:name, 'rails'); @a.reload.update!(name: 'again')")
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Clauses(gormlock.PreserveVersion()).Model(&a).Update("name", "go").Error)
	mustStale(t, s.db.Model(&a).Update("name", "again").Error)
	must(t, s.db.First(&a, a.ID).Error)
	must(t, s.db.Model(&a).Update("name", "again").Error)
}

func guideTriggerDropped(t *testing.T, s shared) {
	a := s.account(t)
	must(t, s.db.Exec(gormlock.VersionTrigger("accounts", "lock_version")).Error)
	blocks := blocksOf(t, "../../docs/migrating-from-rails.md", "sql")
	dropping := blocks[slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, "DROP TRIGGER") })]
	look, drop, _ := strings.Cut(dropping, "\n\n")
	var found struct{ Table, Trigger, Function string }
	must(t, s.db.Raw(strings.Replace(look, "WHERE", "WHERE tgrelid = 'accounts'::regclass AND", 1)).Scan(&found).Error)
	equal(t, "trigger", found.Trigger, "gormlock_version_accounts__lock_version")
	equal(t, "function", found.Function, "gormlock_version_accounts__lock_version()")
	must(t, s.db.Exec(drop).Error)
	must(t, s.db.Exec("UPDATE accounts SET name = 'unseen'").Error)
	s.mustHave(t, a.ID, "unseen", 0)
	var functions int64
	must(t, s.db.Raw("SELECT count(*) FROM pg_proc WHERE oid = to_regproc('gormlock_version_accounts__lock_version')").Scan(&functions).Error)
	equal(t, "functions left", functions, 0)
}

type readyExecution struct{ ID, JobID int64 }

func guideSolidQueue(t *testing.T, s shared) {
	s.rails.run(t, `c = Account.connection
		c.create_table(:solid_queue_ready_executions) { |t| t.bigint :job_id; t.string :queue_name; t.integer :priority, default: 0 }
		6.times { |n| c.execute("INSERT INTO solid_queue_ready_executions (job_id, queue_name) VALUES (#{n + 1}, 'default')") }`)
	const claim = `Account.connection.select_values(%q{SELECT job_id FROM solid_queue_ready_executions WHERE queue_name = 'default'
		ORDER BY priority ASC, job_id ASC LIMIT 2 FOR UPDATE SKIP LOCKED})`
	s.rails.run(t, "Account.connection.begin_transaction(joinable: false); nil")
	equal(t, "Ruby's", fmt.Sprint(value[[]int64](t, s.rails, claim)), "[1 2]")
	must(t, s.db.Transaction(func(tx *gorm.DB) error {
		var mine []readyExecution
		must(t, tx.Table("solid_queue_ready_executions").Scopes(gormlock.WithSkipLocked()).Order("priority, job_id").Limit(2).Find(&mine).Error)
		equal(t, "Go's", fmt.Sprint(mine[0].JobID, mine[1].JobID), "3 4")
		s.rails.run(t, "Account.connection.rollback_transaction; Account.connection.begin_transaction(joinable: false); "+
			"Account.connection.execute('DELETE FROM solid_queue_ready_executions WHERE job_id < 3'); nil")
		equal(t, "Ruby's", fmt.Sprint(value[[]int64](t, s.rails, claim)), "[5 6]")
		s.rails.run(t, "Account.connection.commit_transaction; nil")
		return nil
	}))
}

func guideAutoMigrate(t *testing.T, s shared) {
	s.rails.run(t, "Account.connection.create_table(:tills) { |t| t.integer :balance, default: 0, null: false }")
	type till struct{ ID, Balance int64 }
	must(t, s.db.AutoMigrate(&till{}))
	var now struct {
		DataType, IsNullable string
		ColumnDefault        *string
	}
	must(t, s.db.Raw("SELECT data_type, is_nullable, column_default FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = 'tills' AND column_name = 'balance'").Scan(&now).Error)
	equal(t, "type", now.DataType, "bigint")
	equal(t, "nullable", now.IsNullable, "YES")
	equal(t, "without a default", now.ColumnDefault == nil, true)
}

// blocksOf are the blocks of a document in this language.
func blocksOf(t *testing.T, path, language string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// The searches of both pages find the writers that move no version, and not those that do.
func TestGuides_searchesFindWriters(t *testing.T) {
	t.Parallel()
	for path, code := range map[string]struct{ file, found, passed string }{
		"../../docs/migrating-from-rails.md": {
			file: "app/account.rb",
			found: `account.update_columns(balance: 1)
account.update_column :balance, 1
Account.where(id: 1).update_all("balance = 1")
Account.update_all ['balance = ?', 1]
Account.update_all(<<~SQL)
Account.update_all(%w[x])
Account.update_all(changes)
Account.upsert_all rows
Account.insert_all(rows)
connection.execute "UPDATE accounts SET balance = 1"
connection.exec_update(sql)`,
			passed: `Account.update_all(balance: 1)
Account.update_all({ balance: 1 })
Account.update_all :balance => 1
account.update!(balance: 1)
account.executed`,
		},
		"../../docs/migrating-from-hibernate.md": {
			file: "src/main/Accounts.java",
			found: `@Modifying @Query("update Account a set a.balance = 1")
@Query(value = "update accounts set balance = 1", nativeQuery = true)
em.createNativeQuery("update accounts set balance = 1")
session.createMutationQuery("update Account set balance = 1")
query.executeUpdate();
CriteriaUpdate<Account> update;
@Autowired JdbcTemplate jdbc;
connection.prepareStatement(sql);`,
			passed: `account.setBalance(1);
repository.save(account);`,
		},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{
				code.file: code.found + "\n" + code.passed + "\n",
				"go.go":   "db.Exec(text)\ntx.Table(name)\ndb.Save(&account)\n",
			} {
				must(t, os.MkdirAll(dir+"/"+file[:max(strings.LastIndex(file, "/"), 0)], 0o755))
				must(t, os.WriteFile(dir+"/"+file, []byte(text), 0o600))
			}
			searches := blocksOf(t, path, "sh")
			equal(t, "searches", len(searches), 2)
			for i, want := range []string{code.found, "db.Exec(text)\ntx.Table(name)"} {
				search := exec.CommandContext(t.Context(), "bash", "-c", searches[i]+" 2>/dev/null")
				search.Dir = dir
				out, _ := search.Output() // exit code 2: of the directories some are not there
				got := regexp.MustCompile(`(?m)^\S+?:\d+:`).ReplaceAllString(strings.TrimSpace(string(out)), "")
				equal(t, searches[i], got, want)
			}
		})
	}
}
