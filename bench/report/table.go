package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// verdict is the value in words, the target, and whether it is met. ok is false if nothing was measured.
func (r row) verdict(found measured) (value, target, met string, ok bool) {
	v, ok := found.of(r.benchmark, r.unit)
	if !ok {
		return "", "", "", false
	}
	value = fmt.Sprintf(r.format, v)
	if second, ok := found.of(r.benchmark, r.second); ok {
		value += ", " + fmt.Sprintf(r.format, second)
	}
	if less, ok := strings.CutPrefix(value, "-"); ok {
		value = strings.Replace(less, " more", " fewer", 1)
	}
	if strings.HasPrefix(value, "1 ") {
		value = singular.Replace(value)
	}
	yes := v <= r.most
	switch {
	case r.none:
		return value, "", "", true
	case r.least > 0:
		target, yes = fmt.Sprintf("≥ %v", r.least), v >= r.least
	default:
		target = fmt.Sprintf("≤ %v", r.most)
	}
	if yes {
		return value, target, "yes", true
	}
	return value, target, "no", true
}

var singular = strings.NewReplacer("allocations", "allocation", "round trips", "round trip", "connections", "connection", "modules", "module")

// rounds is how many rounds a ratio is the median of, and their quartiles. It is empty for values that are not ratios.
func (r row) rounds(found measured) string {
	n, ok := found.of(r.benchmark, r.unit+"-rounds")
	if !ok {
		return ""
	}
	number, _, _ := strings.Cut(r.format, " ")
	first, _ := found.of(r.benchmark, r.unit+"-q1")
	third, _ := found.of(r.benchmark, r.unit+"-q3")
	return fmt.Sprintf("%s: "+number+"–"+number, grouped(n), first, third)
}

// lines is the table, its head first.
func lines(found measured) [][]string {
	all := [][]string{{"what", "beside", "measured", "rounds: quartiles", "target", "met"}}
	for _, r := range rows {
		if value, target, met, ok := r.verdict(found); ok {
			all = append(all, []string{r.what, r.beside, value, r.rounds(found), target, met})
		}
	}
	return all
}

// missing are the rows that the run did not measure.
func missing(found measured) []string {
	var all []string
	for _, r := range rows {
		if _, ok := found.of(r.benchmark, r.unit); !ok {
			all = append(all, r.benchmark+" "+r.unit)
		}
	}
	return all
}

// behind are the rows in which gormlock does less per second than what it is compared with.
func behind(found measured) [][]string {
	all := [][]string{{"what", "beside", "measured"}}
	for _, r := range rows {
		value, _, _, ok := r.verdict(found)
		if v, _ := found.of(r.benchmark, r.unit); ok && v < 1 && !r.itself && strings.HasSuffix(r.format, "× the rate") {
			all = append(all, []string{r.what, r.beside, value})
		}
	}
	return all
}

// page is docs/benchmarks.md: pictures and sentences for half a minute, then the table.
func page(found measured) string {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\n")
	for _, text := range summary(found) {
		b.WriteString("- " + text + "\n")
	}
	for _, p := range plots {
		if p.draw(found) != "" {
			fmt.Fprintf(&b, "\n![%s](images/%s)\n", p.about, p.file)
		}
	}
	b.WriteString(`
## All rows

    make bench

What is compared ran in turns in one run, on the same server where both have one. A ratio is the median of the ratios of
the rounds; beside it stands how many rounds there were, and between which two values the middle half of them lies: where
the target lies there too, more than a quarter of the rounds miss it. Times and rates belong to the machine. Round trips
and connections are exact, allocations are the means of 500 statements. The rows without a target are there to know.

`)
	fmt.Fprintf(&b, "%s. %s.\n\n", machine(), strings.Join(versions(found), ", "))
	b.WriteString(markdown(lines(found)))
	if rest := missing(found); len(rest) > 0 {
		b.WriteString("\nNot measured in this run: " + strings.Join(rest, "; ") + ".\n")
	}
	b.WriteString(peers)
	return b.String()
}

func markdown(table [][]string) string {
	var b strings.Builder
	for i, cells := range table {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
		if i == 0 {
			b.WriteString(strings.Repeat("|---", len(cells)) + "|\n")
		}
	}
	return b.String()
}

const peers = `
optimisticlock, go-pglock, redislock and goose's session locker run as they are, River's fetch is the statement of its own driver, and River's
client is its own. Of cirello.io/pglock v1.16.1 only the statements run: its client sends a heartbeat with each lock, at once, and the
release of a lock that is held for less than a millisecond would measure how that is cancelled.
The release of gormlock's lease does not wait for the disk; what the others send does.
etcd is not run: what its locks are worth, and cost, is a cluster of three machines or more, and this is one.
`

func machine() string {
	cpu := runtime.GOARCH
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.SplitSeq(string(info), "\n") {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimLeft(name, "\t: ")
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d × %s, %s", time.Now().Format("2006-01-02"), runtime.NumCPU(), cpu, runtime.GOOS)
}

func versions(found measured) []string {
	all := []string{strings.Replace(runtime.Version(), "go", "Go ", 1)}
	if v, ok := found.of("Server", "version-num"); ok {
		all = append(all, fmt.Sprintf("PostgreSQL %d.%d", int(v)/10000, int(v)%10000))
	}
	if v, ok := found.of("Server", "redis-version-num"); ok {
		all = append(all, fmt.Sprintf("Redis %d.%d.%d", int(v)/10000, int(v)/100%100, int(v)%100))
	}
	for _, module := range []string{"gorm.io/gorm", "gorm.io/plugin/optimisticlock", "github.com/jackc/pgx/v5", "github.com/allisson/go-pglock/v3", "github.com/riverqueue/river", "github.com/pressly/goose/v3", "github.com/bsm/redislock", "github.com/redis/go-redis/v9"} {
		if out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Version}}", module).Output(); err == nil {
			all = append(all, module+" "+strings.TrimSpace(string(out)))
		}
	}
	return all
}
