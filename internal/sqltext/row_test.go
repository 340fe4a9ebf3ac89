package sqltext

import "testing"

func TestJudgesRow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`FROM "jobs"`: true,
		`FROM "jobs" WHERE state = 'ready' ORDER BY priority DESC, id`:                                           true,
		`FROM "app"."jobs" WHERE "jobs"."state" = $1 AND (run_at <= now() OR attempts IN (1,2)) ORDER BY "id"`:   true,
		`FROM jobs WHERE lower(name) = 'select' AND note <> 'a (SELECT 1)' AND id = ANY($2) AND NOT (a OR b)`:    true,
		`FROM jobs WHERE until < NOW() - INTERVAL '1 minute' AND price::numeric(10, 2) > 1 AND "select" IS NULL`: true,
		`FROM jobs WHERE state = 'ready' /* (SELECT 1) */ -- f(x)`:                                               true,
		`FROM jobs ORDER BY coalesce(run_at, created_at), random()`:                                              true,
		`FROM jobs WHERE id IN (SELECT min(id) FROM jobs)`:                                                       false,
		`FROM jobs WHERE EXISTS (TABLE jobs)`:                                                                    false,
		`FROM jobs WHERE id IN (VALUES (1), (2))`:                                                                false,
		`FROM jobs WHERE is_ready(id)`:                                                                           false,
		`FROM jobs WHERE "lower"(name) = 'a'`:                                                                    false,
		`FROM jobs WHERE app.lower(name) = 'a'`:                                                                  false,
		`FROM jobs WHERE app . now () > run_at`:                                                                  false,
		`FROM jobs ORDER BY rank(id)`:                                                                            false,
		`FROM jobs WHERE Jobs.State = 'ready' AND app.jobs.id > 1`:                                               true,
		`FROM jobs WHERE jobs.is_free`:                                                                           false,
		`FROM jobs WHERE "jobs" . "is_free"`:                                                                     false,
		`FROM jobs WHERE (jobs.*).is_free`:                                                                       false,
		`FROM jobs WHERE jobs.U&"st\0061te" = 'ready'`:                                                           false,
		`FROM jobs AS j WHERE state = 'ready'`:                                                                   false,
		`FROM jobs j`:                                                                                            false,
		`FROM jobs, jobs AS other WHERE other.id = jobs.id`:                                                      false,
		`FROM jobs JOIN jobs AS other ON other.id = jobs.id WHERE other.state = 'ready'`:                         false,
		`FROM (SELECT * FROM jobs) AS jobs`:                                                                      false,
		`FROM ready_jobs(1)`:                                                                                     false,
		`FROM jobs WHERE state = 'ready'; SELECT 1`:                                                              false,
		`FROM jobs WHERE state = 'it\'s'`:                                                                        false,
		`FROM jobs WHERE state = 'ready`:                                                                         false,
		`WHERE state = 'ready'`:                                                                                  false,
		``:                                                                                                       false,
	} {
		if got := JudgesRow(text, isJobColumn); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func isJobColumn(name string) bool { return name == "id" || name == "state" }

func TestJudgesRow_allocatesNothing(t *testing.T) { //nolint:paralleltest // it counts
	if n := testing.AllocsPerRun(10, func() {
		JudgesRow(`FROM "jobs" WHERE "jobs"."state" = 'ready' AND (run_at <= now()) ORDER BY id`, isJobColumn)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
