/** Parser for the output of Go test binaries with `-test.v`: Go tests and specs of Ginkgo suites. */

export interface TestResults {
  readonly passed: number;
  readonly skipped: number;
  /** Names of failed tests and specs. */
  readonly failed: readonly string[];
}

const ESCAPES = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, 'g');

/** Counts tests without subtests. For a Ginkgo suite, counts its specs instead of the test that runs it. */
export function readTestOutput(output: string): TestResults {
  const results = new Map<string, string>();
  const suites = new Set<string>();
  const failed: string[] = [];
  let passed = 0;
  let skipped = 0;
  let running = '';
  for (const line of output.replace(ESCAPES, '').split('\n')) {
    running = /^=== RUN +(\S+)/.exec(line)?.[1] ?? running;
    if (line.startsWith('Running Suite: ')) suites.add(running);
    const [, verdict, name] = /^ *--- (PASS|FAIL|SKIP): (\S+)/.exec(line) ?? [];
    if (verdict !== undefined && name !== undefined) results.set(name, verdict);
    const [, good, pending, left] = /-- (\d+) Passed \| \d+ Failed \| (\d+) Pending \| (\d+) Skipped/.exec(line) ?? [];
    if (good !== undefined) {
      passed += Number(good);
      skipped += Number(pending) + Number(left);
    }
    const [, spec] = /^ +\[(?:FAIL|PANICKED!?|TIMEDOUT|INTERRUPTED)\] (.+)$/.exec(line) ?? [];
    if (spec !== undefined) failed.push(spec.trim());
  }
  const parents = new Set([...results.keys()].flatMap(ancestors));
  for (const [name, verdict] of results) {
    if (suites.has(name) || parents.has(name)) continue;
    if (verdict === 'PASS') passed++;
    else if (verdict === 'SKIP') skipped++;
    else failed.push(name);
  }
  return { passed, skipped, failed: [...new Set(failed)] };
}

/** `['TestA', 'TestA/b']` for `TestA/b/c`. */
function ancestors(name: string): string[] {
  const parts = name.split('/');
  return parts.slice(0, -1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
