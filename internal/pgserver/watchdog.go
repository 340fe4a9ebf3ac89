package pgserver

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// watchdog is a process that waits for the end of a pipe whose other end is held by
// this process alone, and then ends the server and removes its directory. The end
// of the pipe comes with release or with the end of this process, however it ends.
type watchdog struct {
	cmd  *exec.Cmd
	pipe *os.File
}

// watchdogScript takes the pid from postmaster.pid when the time has come, as the
// server may have been restarted, and believes it only when that process was started
// on this data directory, as the file may be older than the process of that number.
// What was about to make the directory, such as initdb, may do so after it is removed:
// it is removed again until no process names it.
const watchdogScript = `
trap '' HUP INT TERM
dir=$1
read -r _
ours() {
	if [ -r /proc/self/cmdline ]; then tr '\0' ' ' <"/proc/$1/cmdline"; else ps -o args= -p "$1"; fi 2>/dev/null |
	grep -qF -e "-D $dir/data"
}
named() {
	if [ -r /proc/self/cmdline ]; then grep -aqs -e "$dir/dat[a]" /proc/[0-9]*/cmdline; else ps -axo args= | grep -q -e "$dir/dat[a]"; fi
}
i=0
while [ $i -lt 300 ] && { [ -e "$dir" ] || named; }; do
	pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null)
	case $pid in ''|*[!0-9]*) pid=0 ;; esac
	if [ "$pid" -gt 1 ] && ours "$pid"; then
		if [ $i -lt 100 ]; then kill -QUIT "$pid"; kill -CONT "$pid"; else kill -KILL "$pid"; fi
	else
		rm -rf "$dir" && [ ! -e "$dir" ] && ! named && break
	fi
	i=$((i+1))
	sleep 0.1
done
`

// watch runs the watchdog as the user of this program, who made the directory and may remove it.
func watch(dir string) (*watchdog, error) {
	// Both ends are closed on exec, so no other child of ours keeps the pipe open.
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pgserver: watchdog: %w", err)
	}
	defer read.Close()
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, "sh", dir)
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.SysProcAttr = account{}.attributes()
	cmd.Stdin = read
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("pgserver: watchdog: %w", err), write.Close())
	}
	return &watchdog{cmd: cmd, pipe: write}, nil
}

// release lets the watchdog do its work and waits for it.
func (w *watchdog) release() {
	_ = w.pipe.Close()
	late := time.AfterFunc(endWithin, func() { _ = w.cmd.Process.Kill() })
	defer late.Stop()
	_ = w.cmd.Wait()
}

// dismiss ends the watchdog before there is anything to watch.
func (w *watchdog) dismiss() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	_ = w.pipe.Close()
}
