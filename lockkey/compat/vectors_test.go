package compat_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/gormlock/gormlock/lockkey"
	"github.com/gormlock/gormlock/lockkey/compat"
)

// locks is what pg_locks shows of a key: classid, objid, objsubid.
type locks [3]uint32

func locksOf(t *testing.T, k lockkey.Key) locks {
	t.Helper()
	if err := k.Err(); err != nil {
		t.Fatal(err)
	}
	if hi, lo, ok := k.Pair(); ok {
		return locks{uint32(hi), uint32(lo), 2}
	}
	id, _ := k.Int64()
	return locks{uint32(uint64(id) >> 32), uint32(id), 1}
}

func wantLocks(t *testing.T, k lockkey.Key, want locks) {
	t.Helper()
	if got := locksOf(t, k); got != want {
		t.Errorf("%v: pg_locks %v, want %v", k, got, want)
	}
}

func wantInt64(t *testing.T, k lockkey.Key, want int64) {
	t.Helper()
	if got, ok := k.Int64(); !ok || got != want {
		t.Errorf("%v: bigint %d, %v, want %d", k, got, ok, want)
	}
}

func wantPair(t *testing.T, k lockkey.Key, wantHi, wantLo int32) {
	t.Helper()
	if hi, lo, ok := k.Pair(); !ok || hi != wantHi || lo != wantLo {
		t.Errorf("%v: pair %d, %d, %v, want %d, %d", k, hi, lo, ok, wantHi, wantLo)
	}
}

// reader checks the vectors of one list and says how many there were.
type reader func(t *testing.T, raw json.RawMessage) int

func each[T any](check func(t *testing.T, v T)) reader {
	return func(t *testing.T, raw json.RawMessage) int {
		var vectors []T
		decode(t, raw, &vectors)
		for _, v := range vectors {
			check(t, v)
		}
		return len(vectors)
	}
}

func decode(t *testing.T, raw []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields() // a field no check reads is a vector left unread
	if err := d.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// K1 to K8.
var readers = map[string]reader{
	"rails_migrator/vectors": each(func(t *testing.T, v databaseVector) {
		wantInt64(t, compat.RailsMigrator(v.DB), v.Key)
		wantLocks(t, compat.RailsMigrator(v.DB), v.Locks)
	}),
	"rust_sqlx_migrate/vectors": each(func(t *testing.T, v databaseVector) {
		wantInt64(t, compat.Sqlx(v.DB), v.Key)
		wantLocks(t, compat.Sqlx(v.DB), v.Locks)
	}),
	"golang_migrate/vectors": each(func(t *testing.T, v struct {
		Args  []string `json:"args"`
		Key   int64    `json:"key"`
		Locks locks    `json:"pg_locks"`
	}) {
		wantInt64(t, compat.GolangMigrate(v.Args[0], v.Args[1:]...), v.Key)
		wantLocks(t, compat.GolangMigrate(v.Args[0], v.Args[1:]...), v.Locks)
	}),
	"flyway/magic": func(t *testing.T, raw json.RawMessage) int {
		var magic int64
		decode(t, raw, &magic)
		if tool, ok := compat.Reserved(lockkey.Int64(magic)); !ok || tool == "" {
			t.Errorf("%d is not reserved", magic)
		}
		return 1
	},
	"flyway/vectors": each(func(t *testing.T, v struct {
		Schema string `json:"schema"`
		Table  string `json:"table"`
		Quoted string `json:"quoted"`
		Hash   int32  `json:"hashCode"`
		Key    int64  `json:"key"`
		Locks  locks  `json:"pg_locks"`
	}) {
		if h := compat.StringHashCode(v.Quoted); h != v.Hash {
			t.Errorf("%s: hashCode %d, want %d", v.Quoted, h, v.Hash)
		}
		wantInt64(t, compat.Flyway(v.Schema, v.Table), v.Key)
		wantLocks(t, compat.Flyway(v.Schema, v.Table), v.Locks)
	}),

	"with_advisory_lock/vectors": each(func(t *testing.T, v struct {
		Name   string  `json:"name"`
		Prefix *string `json:"env_prefix"` // always null: not set
		Key1   int32   `json:"key1"`
		Key2   int32   `json:"key2"`
		Locks  locks   `json:"pg_locks"`
	}) {
		if v.Prefix != nil {
			t.Errorf("%q: a prefix no check reads: %q", v.Name, *v.Prefix)
		}
		wantPair(t, compat.WithAdvisoryLock(v.Name, ""), v.Key1, v.Key2)
		wantLocks(t, compat.WithAdvisoryLock(v.Name, ""), v.Locks)
	}),
	"with_advisory_lock/non_string_names": each(func(t *testing.T, v struct {
		Name string `json:"name"` // the Ruby class and literal
		Key1 int32  `json:"key1"`
		Key2 int32  `json:"key2"`
	}) {
		float := -3.7
		keys := map[string]lockkey.Key{
			"int 12345":   compat.WithAdvisoryLockNumber(12345, ""),
			"int 0":       compat.WithAdvisoryLockNumber(0, ""),
			"int -1":      compat.WithAdvisoryLockNumber(-1, ""),
			"int 2**31":   compat.WithAdvisoryLockNumber(1<<31, ""),
			"int 2**32+5": compat.WithAdvisoryLockNumber(1<<32+5, ""),
			"int -2**31":  compat.WithAdvisoryLockNumber(-1<<31, ""),
			"float -3.7":  compat.WithAdvisoryLockNumber(int64(math.Trunc(float)), ""),
			"symbol :foo": compat.WithAdvisoryLock("foo", ""),
			"string foo":  compat.WithAdvisoryLock("foo", ""),
		}
		wantPair(t, keys[v.Name], v.Key1, v.Key2) // an unknown name is the zero Key, which has no pair
	}),
	"with_advisory_lock/prefix_vectors_name_hello": each(func(t *testing.T, v struct {
		Prefix string `json:"env_prefix"`
		Key1   int32  `json:"key1"`
		Key2   int32  `json:"key2"`
	}) {
		wantPair(t, compat.WithAdvisoryLock("hello", v.Prefix), v.Key1, v.Key2)
	}),

	"good_job_md5/vectors":         goodJob(compat.GoodJob),
	"good_job_md5/hashtext_option": goodJob(compat.HashText),
	"good_job_md5/sha256_option":   goodJob(compat.GoodJobSHA256),
	"good_job_md5/uuid_v5_option":  goodJob(compat.GoodJobUUIDv5),

	"pals/vectors": each(func(t *testing.T, v palsVector) {
		wantInt64(t, compat.Pals(v.App, v.Name), v.Key)
		wantLocks(t, compat.Pals(v.App, v.Name), *v.Locks)
	}),
	"pals/no_app": each(func(t *testing.T, v palsVector) {
		wantInt64(t, compat.Pals("", v.Name), v.Key)
	}),
	"django_pglock/vectors": each(func(t *testing.T, v struct {
		ID       string   `json:"id"`
		Key      int64    `json:"key"`
		Advisory [2]int64 `json:"advisory_id"` // the halves, the high one signed
		Locks    locks    `json:"pg_locks"`
	}) {
		wantInt64(t, compat.DjangoPglock(v.ID), v.Key)
		wantInt64(t, compat.DjangoPglock(v.ID), v.Advisory[0]<<32|v.Advisory[1])
		wantLocks(t, compat.DjangoPglock(v.ID), v.Locks)
	}),
	"django_pglocks/vectors": each(func(t *testing.T, v struct {
		ID    string `json:"lock_id"`
		SQL   string `json:"sql"`
		Key   int64  `json:"key"`
		Locks locks  `json:"pg_locks"`
	}) {
		k := compat.DjangoPglocks(v.ID)
		wantInt64(t, k, v.Key)
		wantLocks(t, k, v.Locks)
		id, _ := k.Int64()
		if sql := fmt.Sprintf("SELECT pg_advisory_lock(%d)", id); sql != v.SQL {
			t.Errorf("%q: %s, want %s", v.ID, sql, v.SQL)
		}
	}),
	"django_pglocks/tuple": func(t *testing.T, raw json.RawMessage) int {
		var v struct {
			ID    [2]int32 `json:"lock_id"`
			SQL   string   `json:"sql"`
			Locks locks    `json:"pg_locks"`
		}
		decode(t, raw, &v)
		k := lockkey.Pair(v.ID[0], v.ID[1])
		wantLocks(t, k, v.Locks)
		hi, lo, _ := k.Pair()
		if sql := fmt.Sprintf("SELECT pg_advisory_lock(%d, %d)", hi, lo); sql != v.SQL {
			t.Errorf("%s, want %s", sql, v.SQL)
		}
		return 1
	},

	"java_hashcode/vectors": each(func(t *testing.T, v struct {
		Name   string `json:"name"`
		Hash   int32  `json:"hashCode"`
		Masked int64  `json:"and_long_max"`
		Abs    int64  `json:"math_abs_long"`
		Locks  locks  `json:"pg_locks_and_long_max"`
	}) {
		hash := compat.StringHashCode(v.Name)
		if hash != v.Hash || max(int64(hash), -int64(hash)) != v.Abs {
			t.Errorf("%q: hashCode %d, want %d", v.Name, hash, v.Hash)
		}
		wantInt64(t, compat.JavaHashCode(v.Name), v.Masked)
		wantLocks(t, compat.JavaHashCode(v.Name), v.Locks)
	}),
	"spring_jdbc_lock_registry/vectors": each(func(t *testing.T, v struct {
		Key     string `json:"key"`
		LockKey string `json:"lock_key"`
	}) {
		if got, err := compat.SpringLockKey(v.Key); err != nil || got != v.LockKey {
			t.Errorf("%q: %s, %v, want %s", v.Key, got, err, v.LockKey)
		}
	}),

	"postgres_hashtext/vectors": each(func(t *testing.T, v struct {
		Text  string `json:"text"`
		Hash  int32  `json:"hashtext"`
		Locks locks  `json:"as_bigint_pg_locks"`
	}) {
		wantInt64(t, compat.HashText(v.Text), int64(v.Hash)) // P23: widened with its sign
		wantLocks(t, compat.HashText(v.Text), v.Locks)
		wantPair(t, compat.HashTextPair(v.Text, "a"), v.Hash, 1075015857)
		wantPair(t, compat.HashTextPair("a", v.Text), 1075015857, v.Hash)
	}),
	"postgres_hashtextextended/vectors": each(func(t *testing.T, v struct {
		Text  string `json:"text"`
		Seed  int64  `json:"seed"`
		Value int64  `json:"value"`
	}) {
		wantInt64(t, compat.HashTextExtended(v.Text, v.Seed), v.Value)
	}),

	"distributedlock_csharp/ascii": each(func(t *testing.T, v struct {
		Name  string `json:"name"`
		Key1  int32  `json:"key1"`
		Key2  int32  `json:"key2"`
		Locks locks  `json:"pg_locks"`
	}) {
		wantPair(t, compat.DistributedLock(v.Name), v.Key1, v.Key2)
		wantLocks(t, compat.DistributedLock(v.Name), v.Locks)
	}),
	"distributedlock_csharp/hashed": each(func(t *testing.T, v struct {
		Name string `json:"name"`
		Key  int64  `json:"key"`
		Note string `json:"note"`
	}) {
		wantInt64(t, compat.DistributedLock(v.Name), v.Key)
	}),
	"distributedlock_csharp/hex": each(func(t *testing.T, v struct {
		Name string `json:"name"`
		Form string `json:"form"`
		Key  *int64 `json:"key"`
		Key1 *int32 `json:"key1"`
		Key2 *int32 `json:"key2"`
	}) {
		if v.Form == "bigint" {
			wantInt64(t, compat.DistributedLock(v.Name), *v.Key)
			return
		}
		wantPair(t, compat.DistributedLock(v.Name), *v.Key1, *v.Key2)
	}),

	"constants/vectors": each(func(t *testing.T, v struct {
		Tool string `json:"tool"`
		Form string `json:"form"`
		Key  int64  `json:"key"`
	}) {
		if tool, ok := compat.Reserved(lockkey.Int64(v.Key)); !ok || tool != v.Tool || v.Form != "bigint" {
			t.Errorf("%d in the form %s: %q, %v, want %q", v.Key, v.Form, tool, ok, v.Tool)
		}
	}),
}

type databaseVector struct {
	DB    string `json:"db"`
	Key   int64  `json:"key"`
	Locks locks  `json:"pg_locks"`
}

type palsVector struct {
	App   string `json:"app"`
	Name  string `json:"name"`
	Key   int64  `json:"key"`
	Locks *locks `json:"pg_locks"`
}

func goodJob(scheme func(string) lockkey.Key) reader {
	return each(func(t *testing.T, v struct {
		Key    string `json:"key"`
		Bigint int64  `json:"bigint"`
		Locks  *locks `json:"pg_locks"`
	}) {
		wantInt64(t, scheme(v.Key), v.Bigint)
		if v.Locks != nil {
			wantLocks(t, scheme(v.Key), *v.Locks)
		}
	})
}

func TestVectors_everyOneIsRead(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/key-vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		About   string                                `json:"about"`
		Schemes map[string]map[string]json.RawMessage `json:"schemes"`
	}
	decode(t, raw, &file)
	total, unread := 0, maps.Clone(readers)
	for scheme, lists := range file.Schemes {
		for list, raw := range lists {
			if slices.Contains([]string{"alg", "form", "note"}, list) {
				continue // prose
			}
			name := scheme + "/" + list
			t.Run(name, func(t *testing.T) {
				read := unread[name]
				if read == nil {
					t.Fatal("nothing reads these vectors")
				}
				delete(unread, name)
				n := read(t, raw)
				if n == 0 {
					t.Error("no vectors")
				}
				total += n
			})
		}
	}
	if len(unread) > 0 {
		t.Errorf("not in the file: %v", slices.Sorted(maps.Keys(unread)))
	}
	if total != 309 {
		t.Errorf("%d vectors, want 309", total)
	}
}
