/** Sends requests to a real server and compares the responses with the model field by field. */
import assert from 'node:assert/strict';
import type { CallOptions } from '../apiserver/harness.ts';
import type { PlainAnswer as Answer, Send } from './keep-alive.ts';
import { describeOwners, documentOf, type Expected, type Model, readDocument, type Stored } from './model.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

type Document = Record<string, unknown>;

/** Also checks values that the server chooses: UIDs and times are never reused, revisions increase. */
export class Session {
  readonly #model: Model;
  readonly #send: Send;
  readonly #uids = new Set<string>();
  readonly #created = new Map<string, string>();
  #revision = 0;
  #trace: string[] = [];

  constructor(model: Model, send: Send) {
    this.#model = model;
    this.#send = send;
  }

  get revision(): number {
    return this.#revision;
  }

  /** Last requests, for the message of a failure. */
  get trace(): string {
    return this.#trace.slice(-12).join('\n');
  }

  async write(
    method: string,
    path: string,
    name: string,
    expected: Expected,
    options: CallOptions,
    dryRun: boolean,
  ): Promise<void> {
    const answer = await this.#send(method, path, options);
    this.#trace.push(
      `${method} ${path} ${options.type ?? ''} ${options.raw ?? JSON.stringify(options.body)} -> ${answer.code} ${answer.text.slice(0, 3800)}`,
    );
    if (expected.answer === 'failure') this.#checkFailure(answer, expected, name);
    else if (expected.answer === 'deleted') this.#checkDeleted(answer, expected.object, dryRun);
    else {
      assert.equal(answer.code, expected.code);
      const removed = !dryRun && !this.#model.objects.has(expected.object.name);
      this.#checkObject(answer.body, expected.object, { fresh: expected.fresh, dryRun, removed });
    }
  }

  #checkFailure(answer: Answer, expected: { code: number; reason: string }, name: string): void {
    assert.equal(answer.code, expected.code);
    const { kind, apiVersion, status, reason, code, message, details } = answer.body as Document;
    assert.deepEqual(
      { kind, apiVersion, status, reason, code },
      {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        reason: expected.reason,
        code: expected.code,
      },
    );
    const { resource, kind: kindName } = this.#model.rules;
    const [plural = '', ...group] = resource.split('.');
    switch (expected.reason) {
      case 'NotFound':
        assert.equal(message, `${resource} "${name}" not found`);
        break;
      case 'AlreadyExists':
        assert.match(String(message), /already exists/);
        break;
      case 'Invalid':
        assert.ok(
          String(message).startsWith(
            `${kindName}${group.length > 0 ? `.${group.join('.')}` : ''} "${name}" is invalid: `,
          ) ||
            String(message).startsWith(`${resource} "${name}" is invalid: metadata.resourceVersion: `) ||
            String(message).startsWith('the server rejected our request'),
          String(message),
        );
        return;
      default:
        return;
    }
    assert.equal((details as Document)['name'], name);
    assert.equal((details as Document)['kind'], plural);
  }

  #checkDeleted(answer: Answer, object: Stored, dryRun: boolean): void {
    assert.equal(answer.code, 200);
    const { kind, status, details } = answer.body as Document;
    assert.equal(kind, 'Status');
    assert.equal(status, 'Success');
    const { name, uid } = details as Document;
    assert.deepEqual({ name, uid }, { name: object.name, uid: object.uid });
    if (!dryRun) this.#model.settle(object.name, { uid: object.uid, revision: 0, tracked: object.tracked });
  }

  /** `fresh`: the server had to choose a new revision, and a UID for a new object. */
  #checkObject(body: unknown, expected: Stored, how: { fresh: boolean; dryRun: boolean; removed: boolean }): void {
    const read = readDocument(body as Document);
    assert.deepEqual(read.tree, documentOf(this.#model, expected));
    assert.equal(describeOwners(read.owners), describeOwners(expected.owners));
    assert.match(read.created, TIME);
    assert.equal(read.deletion !== undefined, expected.terminating);
    if (expected.uid === '') {
      assert.match(read.uid, UUID);
      assert.ok(!this.#uids.has(read.uid), 'a uid is given twice');
      this.#uids.add(read.uid);
      if (!how.dryRun) this.#created.set(read.uid, read.created);
    } else {
      assert.equal(read.uid, expected.uid);
      assert.equal(read.created, this.#created.get(read.uid));
    }
    if (how.dryRun) return;
    if (how.removed) {
      this.#model.settle(expected.name, { uid: read.uid, revision: 0, tracked: read.tracked });
      return;
    }
    if (how.fresh) {
      assert.ok(read.revision > this.#revision, `revision ${read.revision} after ${this.#revision}`);
      this.#revision = read.revision;
      this.#model.settle(expected.name, { uid: read.uid, revision: read.revision, tracked: read.tracked });
    } else assert.equal(read.revision, expected.revision);
  }

  async read(path: string, name: string): Promise<void> {
    const answer = await this.#send('GET', `${path}/${name}`);
    this.#trace.push(`GET ${name} -> ${answer.code}`);
    const expected = this.#model.objects.get(name);
    if (expected === undefined) this.#checkFailure(answer, { code: 404, reason: 'NotFound' }, name);
    else this.#checkObject(answer.body, expected, { fresh: false, dryRun: false, removed: false });
  }

  /** Lists in pages of `limit` and calls `between` after each page. All pages must show the state before. */
  async list(
    path: string,
    selector: string,
    matches: (object: Stored) => boolean,
    limit: number,
    between: () => Promise<void>,
  ): Promise<void> {
    const expected = this.#model.list(matches);
    const items: Document[] = [];
    let token = '';
    let revision: string | undefined;
    do {
      const query = new URLSearchParams({
        ...(selector === '' ? {} : { labelSelector: selector }),
        ...(limit === 0 ? {} : { limit: String(limit) }),
        ...(token === '' ? {} : { continue: token }),
      });
      const { code, body } = await this.#send('GET', `${path}?${query}`);
      assert.equal(code, 200);
      const list = body as unknown as {
        kind: string;
        items: Document[];
        metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number };
      };
      assert.equal(list.kind, `${this.#model.rules.kind}List`);
      revision ??= list.metadata.resourceVersion;
      assert.equal(list.metadata.resourceVersion, revision, 'pages of one list are of one revision');
      if (limit > 0) assert.ok(list.items.length <= limit);
      items.push(...list.items);
      if (list.metadata.remainingItemCount !== undefined)
        assert.equal(list.metadata.remainingItemCount, expected.length - items.length);
      token = list.metadata.continue ?? '';
      if (token !== '') await between();
    } while (token !== '');
    assert.ok(Number(revision) >= this.#revision || limit > 0);
    assert.deepEqual(
      items.map((item) => (item['metadata'] as Document)['name']),
      expected.map((object) => object.name),
    );
    for (const [at, item] of items.entries()) {
      const { apiVersion, kind } = this.#model.rules;
      this.#checkObject({ apiVersion, kind, ...item }, expected[at] as Stored, {
        fresh: false,
        dryRun: false,
        removed: false,
      });
    }
  }

  /** Compares the events of a watch from `from` with all changes that are visible to the selector `matches`. */
  async watch(
    path: string,
    from: number,
    skip: number,
    selector: string,
    matches: (object: Stored) => boolean,
  ): Promise<void> {
    const query = new URLSearchParams({
      watch: 'true',
      resourceVersion: String(from),
      timeoutSeconds: '1',
      ...(selector === '' ? {} : { labelSelector: selector }),
    });
    const { code, text } = await this.#send('GET', `${path}?${query}`);
    assert.equal(code, 200);
    const events = text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { type: string; object: Document });
    const expected = this.#model.log.slice(skip).flatMap(({ type, object, before }) => {
      const now = type !== 'DELETED' && matches(object);
      const then = before !== undefined && matches(before);
      if (now) return [{ type: then ? 'MODIFIED' : 'ADDED', object }];
      // When an object is deleted or no longer selected, the event has its last selected state.
      return then ? [{ type: 'DELETED', object: before }] : [];
    });
    assert.deepEqual(
      events.map(({ type, object }) => `${type} ${String((object['metadata'] as Document)['name'])}`),
      expected.map(({ type, object }) => `${type} ${object.name}`),
    );
    let last = from;
    for (const [at, event] of events.entries()) {
      const { object } = expected[at] as { object: Stored };
      const { revision, tree } = readDocument(event.object);
      assert.ok(revision > last, 'revisions of events grow');
      last = revision;
      assert.deepEqual(tree, documentOf(this.#model, object));
      if (event.type !== 'DELETED') assert.equal(revision, object.revision);
    }
  }
}
