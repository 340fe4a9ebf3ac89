(function () {
	"use strict";
	var every = Number(document.documentElement.dataset.refresh) || 2000;
	var filter = document.getElementById("filter"), pause = document.getElementById("pause");
	var paused = false, busy = false;
	filter.hidden = pause.hidden = false;

	function sift() {
		var wanted = filter.value.trim().toLowerCase();
		document.querySelectorAll("tbody tr").forEach(function (row) {
			row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
		});
	}

	// What somebody has opened or scrolled to stays so.
	function keep(before, after) {
		before.querySelectorAll("[data-key]").forEach(function (old) {
			var now = after.querySelector('[data-key="' + CSS.escape(old.dataset.key) + '"]');
			if (now) {
				if (old.open) { now.open = true; }
				now.dataset.left = old.scrollLeft;
			}
		});
	}

	// The address without what an earlier request did.
	function address() {
		var here = new URL(location.href);
		here.searchParams.delete("did");
		here.searchParams.delete("pid");
		return here.pathname + here.search;
	}

	function selecting() {
		var selection = window.getSelection();
		return selection && !selection.isCollapsed;
	}

	async function refresh() {
		if (paused || busy || document.hidden || selecting()) { return; }
		busy = true;
		try {
			var answer = await fetch(address(), { headers: { Accept: "text/html" }, cache: "no-store", signal: AbortSignal.timeout(15000) });
			var page = new DOMParser().parseFromString(await answer.text(), "text/html");
			var before = document.querySelector("main"), after = page.querySelector("main");
			if (!after) { throw new Error("no page"); }
			if (paused) { return; }
			keep(before, after);
			before.replaceWith(document.adoptNode(after));
			after.querySelectorAll("[data-left]").forEach(function (e) { e.scrollLeft = Number(e.dataset.left); });
			document.title = page.title;
			document.documentElement.dataset.refreshed = Number(document.documentElement.dataset.refreshed || 0) + 1;
			sift();
		} catch (e) {
			document.getElementById("offline").hidden = false;
		} finally {
			busy = false;
		}
	}

	pause.addEventListener("click", function () {
		paused = !paused;
		pause.setAttribute("aria-pressed", paused);
		pause.textContent = paused ? "Paused" : "Pause";
		refresh();
	});
	filter.addEventListener("input", sift);
	document.addEventListener("visibilitychange", refresh);
	setInterval(refresh, every);
})();
