/**
 * Upstream's list of conformance cases, and the evaluation of a run: every listed case passed, failed or was not run.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';

/** Result of a case of the suite. Skipped cases have none. */
export interface Outcome {
  readonly name: string;
  readonly failure: string | undefined;
}

export interface Verdict {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
  readonly notRun: readonly string[];
}

/** Names of the release's conformance cases, from its `conformance.yaml`. `sources`: source tree of Kubernetes. */
export async function readConformanceList(sources: string): Promise<string[]> {
  const path = join(sources, 'test/conformance/testdata/conformance.yaml');
  const cases = parse(await readFile(path, 'utf8')) as readonly { readonly codename?: unknown }[];
  const names = cases.map(({ codename }) => {
    if (typeof codename !== 'string')
      throw new Error(`${path}: a case has no codename; another release has another form`);
    return codename;
  });
  if (names.length === 0) throw new Error(`${path}: no cases`);
  return names;
}

/** Cases in the list that the flags of a run select. */
export function expectedCases(list: readonly string[], groups: readonly string[], skip: string): string[] {
  const focus = groups.map((group) => new RegExp(group));
  const left = skip === '' ? undefined : new RegExp(skip);
  return list.filter((name) => focus.some((each) => each.test(name)) && left?.test(name) !== true);
}

/** Compares the results with the expected cases. A case that failed in one of several runs counts as failed. */
export function judge(expected: readonly string[], outcomes: readonly Outcome[]): Verdict {
  const failures = new Map<string, boolean>();
  for (const { name, failure } of outcomes) failures.set(name, failures.get(name) === true || failure !== undefined);
  return {
    passed: expected.filter((name) => failures.get(name) === false),
    failed: expected.filter((name) => failures.get(name) === true),
    notRun: expected.filter((name) => !failures.has(name)),
  };
}

/** Cases in a JUnit report of the suite without filtered and skipped ones. */
export function readReport(xml: string): Outcome[] {
  const outcomes: Outcome[] = [];
  for (const [, attributes = '', body = ''] of xml.matchAll(/<testcase ([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = /\bname="([^"]*)"/.exec(attributes)?.[1] ?? '?';
    const status = /\bstatus="([^"]*)"/.exec(attributes)?.[1] ?? 'passed';
    if (status === 'skipped' || status === 'pending' || !name.startsWith('[It] ')) continue;
    const message = /<(?:failure|error)[^>]*>([^<]*)/.exec(body)?.[1];
    outcomes.push({
      name: unescapeXml(name.slice('[It] '.length)),
      failure: status === 'passed' ? undefined : unescapeXml(message ?? status),
    });
  }
  return outcomes;
}

const unescapeXml = (text: string): string =>
  text
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#34;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&#xA;', '\n')
    .replaceAll('&amp;', '&');
