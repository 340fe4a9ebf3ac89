package mariaserver

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

const startsOne = "GORMLOCK_TEST_STARTS_A_MARIADB"

func TestMain(m *testing.M) {
	if os.Getenv(startsOne) != "" {
		s, err := start()
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("dir", s.dir)
		select {}
	}
	os.Exit(m.Run())
}

// A server ends with the process that started it, even if that is killed, and leaves nothing.
func TestAServerEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	DSN(t) // skips the test if there is none
	program := exec.CommandContext(t.Context(), os.Args[0])
	program.Env = append(os.Environ(), startsOne+"=1")
	out, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	dir, started := strings.CutPrefix(strings.TrimSpace(line), "dir ")
	if _, err := os.Stat(dir); !started || err != nil {
		t.Fatal(line, err)
	}
	_ = program.Process.Kill()
	_ = program.Wait()
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(dir, "is still there")
		}
	}
	if left, _ := exec.CommandContext(t.Context(), "pgrep", "-f", dir+"/data").Output(); len(left) > 0 {
		t.Errorf("processes of it are left: %s", left)
	}
}
