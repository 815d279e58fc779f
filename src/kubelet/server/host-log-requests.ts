/**
 * Requests for host logs below `/logs/`: files of the host's log directory, `?query=` of KEP-2258 (`kubectl get --raw`,
 * kubectl node-logs), and `/logs/journal` for `oc adm node-logs`. All three require the permission nodes/log.
 */
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { HostLogSource, HostLogs, JournalQuery } from '../ports/host-logs-port.ts';
import { HttpError } from './http-error.ts';
import type { KubeletResponse } from './port.ts';

const MAX_UNITS = 16;
const MAX_PATTERN = 1024;
const MAX_TAIL = 100_000;
const UNIT = /^[\w.@:\\-]{1,128}$/;
const OUTPUTS = new Set(['short', 'short-precise', 'short-iso', 'short-unix', 'json', 'cat', 'verbose']);
const TEXT = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };

export class HostLogRequests {
  readonly #logs: HostLogs;
  readonly #aliases: ReadonlyMap<string, string>;

  constructor({ logs, units }: HostLogSource) {
    this.#logs = logs;
    this.#aliases = units;
  }

  async serve(path: string, query: URLSearchParams, response: KubeletResponse, signal: AbortSignal): Promise<void> {
    if (query.has('query')) return this.#journal(byService(query), response, signal);
    if (path === 'journal') return this.#journal(byUnit(query), response, signal);
    const names = await this.#logs.names(path);
    if (names !== undefined) {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8', 'x-content-type-options': 'nosniff' });
      response.end(`<pre>\n${names.map((name) => link(name)).join('')}</pre>\n`);
      return;
    }
    const file = await this.#logs.open(path);
    if (file === undefined) throw new HttpError(404, '404 page not found');
    await send(file, response);
  }

  async #journal(query: JournalQuery, response: KubeletResponse, signal: AbortSignal): Promise<void> {
    const units = [...new Set(query.units.map((unit) => this.#aliases.get(unit) ?? unit))];
    await send(this.#logs.journal({ ...query, units }, signal), response);
  }
}

/** Sends the status with the first bytes, so that an earlier error still determines the status. */
async function send(source: Readable, response: KubeletResponse): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    source.once('readable', resolve).once('end', resolve).once('error', reject);
  });
  response.writeHead(200, TEXT);
  await pipeline(source, response);
}

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&#34;' };

function link(name: string): string {
  const text = name.replaceAll(/[&<>"]/g, (each) => ESCAPES[each] ?? '');
  return `<a href="${encodeURI(name).replaceAll(/[?#]/g, encodeURIComponent)}">${text}</a>\n`;
}

/** Parameters of KEP-2258. */
function byService(query: URLSearchParams): JournalQuery {
  return {
    units: unitsOf(query.getAll('query'), 'query'),
    ...timesOf(query, 'sinceTime', 'untilTime'),
    ...numbersOf(query, 'tailLines'),
    ...patternOf(query, 'pattern'),
  };
}

/** Parameters of OpenShift. */
function byUnit(query: URLSearchParams): JournalQuery {
  const output = query.get('output') ?? '';
  if (output !== '' && !OUTPUTS.has(output))
    throw new HttpError(400, `output: ${JSON.stringify(output.slice(0, 64))} is not one of ${[...OUTPUTS].join(', ')}`);
  return {
    units: unitsOf(query.getAll('unit'), 'unit'),
    ...timesOf(query, 'since', 'until'),
    ...numbersOf(query, 'tail'),
    ...patternOf(query, 'grep'),
    ...(query.get('case-sensitive') === 'false' ? { caseSensitive: false } : {}),
    ...(output === '' ? {} : { output }),
  };
}

function unitsOf(names: readonly string[], field: string): readonly string[] {
  if (names.length > MAX_UNITS) throw new HttpError(400, `${field}: at most ${MAX_UNITS} names`);
  const wrong = names.find((name) => !UNIT.test(name) || name.startsWith('-'));
  if (wrong !== undefined)
    throw new HttpError(400, `${field}: ${JSON.stringify(wrong.slice(0, 64))} is not the name of a service`);
  return names;
}

function timesOf(query: URLSearchParams, since: string, until: string): Pick<JournalQuery, 'since' | 'until'> {
  return { ...timeOf(query, since, 'since'), ...timeOf(query, until, 'until') };
}

function timeOf<K extends 'since' | 'until'>(query: URLSearchParams, field: string, as: K): { [P in K]?: string } {
  const text = query.get(field) ?? '';
  if (text === '') return {};
  // RFC 3339, and journalctl's relative and absolute formats.
  if (!/^[\w:.+ -]{1,40}$/.test(text) || /^-[^\d]/.test(text))
    throw new HttpError(400, `${field}: give an RFC 3339 time`);
  return { [as]: text } as { [P in K]?: string };
}

function numbersOf(query: URLSearchParams, tailField: string): Pick<JournalQuery, 'tail' | 'boot'> {
  const [tail, boot] = [integerOf(query, tailField, 0, MAX_TAIL), integerOf(query, 'boot', -100, 0)];
  return { ...(tail === undefined ? {} : { tail }), ...(boot === undefined ? {} : { boot }) };
}

function integerOf(query: URLSearchParams, field: string, min: number, max: number): number | undefined {
  const text = query.get(field) ?? '';
  if (text === '') return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value < min || value > max)
    throw new HttpError(400, `${field}: give an integer from ${min} to ${max}`);
  return value;
}

function patternOf(query: URLSearchParams, field: string): Pick<JournalQuery, 'pattern'> {
  const pattern = query.get(field) ?? '';
  if (pattern.length > MAX_PATTERN || pattern.includes('\0'))
    throw new HttpError(400, `${field}: at most ${MAX_PATTERN} characters`);
  return pattern === '' ? {} : { pattern };
}
