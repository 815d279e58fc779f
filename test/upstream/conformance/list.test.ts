import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { expectedCases, judge, readConformanceList, readReport } from './list.ts';

const REPORT = `<testsuite>
<testcase name="[It] [sig-a] reads &#34;a &amp; b&#34; [Conformance]" status="passed" time="1"></testcase>
<testcase name="[It] [sig-a] wants two nodes [Conformance]" status="skipped" time="0"><skipped message="x"></skipped></testcase>
<testcase name="[It] [sig-b] fails [Disruptive] [Conformance]" status="failed"><failure type="failed">expected 1
got 2</failure></testcase>
<testcase name="[ReportAfterSuite] Kubernetes e2e suite report" status="passed"></testcase>
</testsuite>`;

test('reads the cases of a test report and omits skipped cases', () => {
  assert.deepEqual(readReport(REPORT), [
    { name: '[sig-a] reads "a & b" [Conformance]', failure: undefined },
    { name: '[sig-b] fails [Disruptive] [Conformance]', failure: 'expected 1\ngot 2' },
  ]);
});

test('reports a listed conformance case that was skipped as not run', () => {
  const list = [
    '[sig-a] reads "a & b" [Conformance]',
    '[sig-a] wants two nodes [Conformance]',
    '[sig-b] fails [Disruptive] [Conformance]',
  ];
  assert.deepEqual(judge(list, readReport(REPORT)), { passed: [list[0]], notRun: [list[1]], failed: [list[2]] });
});

test('counts a conformance case as failed if it failed in one of two runs', () => {
  const outcomes = [
    { name: 'case', failure: 'late' },
    { name: 'case', failure: undefined },
  ];
  assert.deepEqual(judge(['case'], outcomes), { passed: [], failed: ['case'], notRun: [] });
});

test('selects conformance cases by the focus and skip expressions', () => {
  const list = ['[sig-a] one [Conformance]', '[sig-a] two [Serial] [Conformance]', '[sig-b] three [Conformance]'];
  assert.deepEqual(expectedCases(list, ['\\[Conformance\\]'], ''), list);
  assert.deepEqual(expectedCases(list, ['\\[sig-a\\]'], '\\[Serial\\]'), [list[0]]);
});

test('reads conformance case names that span several lines of the list', async () => {
  const sources = await mkdtemp(join(tmpdir(), 'he-list-'));
  try {
    const directory = join(sources, 'test/conformance/testdata');
    await mkdir(directory, { recursive: true });
    const text = "- testname: One\n  codename: '[sig-a] a name that is\n    wrapped [Conformance]'\n  release: v1.9\n";
    await writeFile(join(directory, 'conformance.yaml'), text);
    assert.deepEqual(await readConformanceList(sources), ['[sig-a] a name that is wrapped [Conformance]']);
  } finally {
    await rm(sources, { recursive: true, force: true });
  }
});
