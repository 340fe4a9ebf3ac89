package gormlocktest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"gorm.io/gorm"

	"github.com/gormlock/gormlock"
)

// ExpectOnce expects a Once with a new key. Expect next what its function does, and then [ExpectOnceStored], or
// [ExpectOnceUndo] if the function fails.
func ExpectOnce(t testing.TB, mock sqlmock.Sqlmock, key string, opts ...gormlock.OnceOption) *sqlmock.ExpectedExec {
	t.Helper()
	return expectIn(t, mock, onceTexts(t, key, nil, opts)[0])
}

// ExpectOnceStored expects what a Once does when its function has returned this result.
func ExpectOnceStored(t testing.TB, mock sqlmock.Sqlmock, key string, result any) *sqlmock.ExpectedExec {
	t.Helper()
	return expectIn(t, mock, onceTexts(t, key, result, nil)[1])
}

// ExpectOnceUndo expects what a Once does when its function has failed, or the server refused one of its own statements.
func ExpectOnceUndo(mock sqlmock.Sqlmock) *sqlmock.ExpectedExec {
	return expect(mock, "ROLLBACK TO SAVEPOINT gormlock_once_1; RELEASE SAVEPOINT gormlock_once_1")
}

// ExpectOnceFound expects a whole Once with a key that was stored before, with these options and this result. Its function
// does not run. If the Once has another ForRequest than the stored one, it returns ErrOtherRequest.
func ExpectOnceFound(t testing.TB, mock sqlmock.Sqlmock, key string, result any, opts ...gormlock.OnceOption) {
	t.Helper()
	mustBeThere(t, mock)
	claim := onceTexts(t, key, nil, opts)[0]
	at := onceClaim.FindStringSubmatchIndex(claim)
	if at == nil {
		t.Fatalf("a Once begins in a way that is unknown here: %s", claim)
	}
	var request any
	if from, to := at[4], at[5]; from >= 0 {
		sum, err := hex.DecodeString(claim[from:to])
		if err != nil {
			t.Fatal(err)
		}
		request = base64.StdEncoding.EncodeToString(sum)
	}
	stored, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	untilRequest, fromEnd := claim[:at[3]], claim[at[6]:]
	expectPattern(mock, regexp.QuoteMeta(untilRequest)+".*"+regexp.QuoteMeta(fromEnd)).WillReturnResult(sqlmock.NewResult(0, 0))
	mock.ExpectQuery(`^SELECT encode\(convert_to\(result::text, 'UTF8'\), 'base64'\), encode\(request, 'base64'\), created_at = now\(\) ` +
		`FROM gormlock_once WHERE key = convert_from\(decode\(\$1, 'hex'\), 'UTF8'\)$`).WithArgs(hex.EncodeToString([]byte(key))).
		WillReturnRows(sqlmock.NewRows([]string{"result", "request", "own"}).AddRow(base64.StdEncoding.EncodeToString(stored), request, false))
	expect(mock, "RELEASE SAVEPOINT gormlock_once_1")
}

// onceClaim finds the key, the request and the end in the first text of a Once.
var onceClaim = regexp.MustCompile(`VALUES (\(convert_from\(decode\('[0-9a-f]*', 'hex'\), 'UTF8'\), )(?:NULL|decode\('([0-9a-f]*)', 'hex'\)), .*(\) ON CONFLICT)`)

// onceTexts are the texts that a Once executes if its key is new and its function returns result.
func onceTexts(t testing.TB, key string, result any, opts []gormlock.OnceOption) []string {
	t.Helper()
	return heard(t, func(tx *gorm.DB) error {
		_, err := gormlock.Once(tx, key, func(*gorm.DB) (any, error) { return result, nil }, opts...)
		if err != nil {
			t.Fatal(err) // such as a result that cannot be stored
		}
		return nil
	})
}
