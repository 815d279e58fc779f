/** Random operations on a few objects of one kind: all ways of writing, with intentional errors in some requests. */
import { Choices } from '../apiserver/core/patch/choices.ts';
import type { Send } from './keep-alive.ts';
import type { Draft, KindRules, Stored } from './model.ts';
import { Model } from './model.ts';
import { Session } from './session.ts';
import {
  jsonPatched,
  type Leaf,
  leavesOf,
  mergePatched,
  type Operation,
  type Patch,
  type Tree,
  treeOf,
} from './tree.ts';

export interface Subject extends KindRules {
  /** Path of the group and version: `/api/v1`, `/apis/lab.test/v1`. */
  readonly root: string;
  readonly plural: string;
  /** Field paths of the kind, with possible values. */
  readonly fields: Readonly<Record<string, readonly Leaf[]>>;
  /**
   * Values in every request, so that no map becomes empty: custom resources keep empty maps, which the model does not
   * support.
   */
  readonly anchors: Readonly<Record<string, Leaf>>;
  /** Whether the kind supports strategic merge patches. */
  readonly strategic: boolean;
}

const NAMES = ['a', 'b', 'c', 'd'] as const;
const MANAGERS = ['one', 'two', 'three'] as const;
const LABELS: Readonly<Record<string, readonly Leaf[]>> = {
  'metadata/labels/x': ['1', '2'],
  'metadata/labels/y': ['1', ''],
  'metadata/annotations/n': ['one', 'two', 'ä🙂'],
};
const FINALIZERS = [[], [], [], ['lab.test/a'], ['lab.test/a', 'lab.test/b']] as const;
const SELECTORS: readonly (readonly [string, (object: Stored) => boolean])[] = [
  ['', () => true],
  ['x=1', ({ leaves }) => leaves.get('metadata/labels/x') === '1'],
  ['x!=1', ({ leaves }) => leaves.get('metadata/labels/x') !== '1'],
  ['y', ({ leaves }) => leaves.has('metadata/labels/y')],
  ['x in (1,2),!y', ({ leaves }) => leaves.has('metadata/labels/x') && !leaves.has('metadata/labels/y')],
];

/** Runs in a namespace of its own. Rejects at the first response that differs from the model. */
export async function live(
  seed: number,
  steps: number,
  subject: Subject,
  namespace: string,
  send: Send,
): Promise<void> {
  const life = new Life(seed, subject, namespace, send);
  await life.run(steps);
}

class Life {
  readonly #choices: Choices;
  readonly #subject: Subject;
  readonly #model: Model;
  readonly #session: Session;
  readonly #seed: number;
  readonly #path: string;

  constructor(seed: number, subject: Subject, namespace: string, send: Send) {
    this.#seed = seed;
    this.#choices = new Choices(seed);
    this.#subject = subject;
    this.#path = `${subject.root}/namespaces/${namespace}/${subject.plural}`;
    this.#model = new Model(subject, namespace);
    this.#session = new Session(this.#model, send);
  }

  async run(steps: number): Promise<void> {
    try {
      await this.#create('first', { leaves: this.#leaves(), finalizers: [] }, false);
      const from = this.#session.revision;
      const skip = this.#model.log.length;
      for (let step = 0; step < steps; step++) await this.#step();
      for (const [selector, matches] of this.#choices.some(SELECTORS, 2, 2))
        await this.#session.watch(this.#path, from, skip, selector, matches);
    } catch (error) {
      throw new Error(
        `seed ${this.#seed}: ${error instanceof Error ? error.message : String(error)}\n${this.#session.trace}`,
        { cause: error },
      );
    }
  }

  async #step(): Promise<void> {
    const choices = this.#choices;
    const dryRun = choices.chance(0.1);
    switch (choices.below(12)) {
      case 0:
      case 1:
      case 2:
        return this.#create(choices.chance(0.05) ? 'Not_A_Name' : choices.one(NAMES), this.#draft(), dryRun);
      case 3:
        return this.#put(choices.one(NAMES), dryRun);
      case 4:
        return this.#mergePatch(choices.one(NAMES), dryRun);
      case 5:
        return this.#jsonPatch(choices.one(NAMES), dryRun);
      case 6:
      case 7:
      case 8:
        return this.#apply(choices.one(NAMES), dryRun);
      case 9:
        return this.#delete(choices.one(NAMES), dryRun);
      case 10:
        return this.#session.read(this.#path, choices.one(NAMES));
      default: {
        const [selector, matches] = choices.one(SELECTORS);
        const between = async (): Promise<void> => this.#mergePatch(choices.one(NAMES), false);
        return this.#session.list(this.#path, selector, matches, choices.below(4), between);
      }
    }
  }

  #leaves(): Map<string, Leaf> {
    const all = Object.entries({ ...this.#subject.fields, ...LABELS });
    const chosen = this.#choices
      .some(all, 0, 5)
      .map(([path, values]): [string, Leaf] => [path, this.#choices.one(values)]);
    return new Map([...chosen, ...Object.entries(this.#subject.anchors)]);
  }

  #draft(): Draft {
    return { leaves: this.#leaves(), finalizers: this.#choices.one(FINALIZERS) };
  }

  /** Request body; `more` is added to the metadata. */
  #body(name: string, draft: Draft, more: Tree = {}): object {
    const tree = treeOf(draft.leaves);
    const { apiVersion, kind } = this.#subject;
    const finalizers = draft.finalizers.length === 0 ? {} : { finalizers: draft.finalizers };
    return {
      ...tree,
      apiVersion,
      kind,
      metadata: { ...(tree['metadata'] as Tree | undefined), ...finalizers, name, ...more },
    };
  }

  #query(manager: string, dryRun: boolean, more = ''): string {
    return `?fieldManager=${manager}${dryRun ? '&dryRun=All' : ''}${more}`;
  }

  async #create(name: string, draft: Draft, dryRun: boolean): Promise<void> {
    const manager = this.#choices.one(MANAGERS);
    const expected = this.#model.create(name, draft, `${manager}|Update`, dryRun);
    const body = this.#body(name, draft);
    await this.#session.write('POST', this.#path + this.#query(manager, dryRun), name, expected, { body }, dryRun);
  }

  async #put(name: string, dryRun: boolean): Promise<void> {
    const choices = this.#choices;
    const draft = this.#draft();
    const before = this.#model.objects.get(name);
    const status = this.#subject.status && choices.chance(0.4);
    const stale = choices.chance(0.15);
    const revision =
      choices.chance(0.3) || before === undefined
        ? undefined
        : stale
          ? Math.max(1, before.revision - 1)
          : before.revision;
    const uid = choices.chance(0.1) ? 'b5f2c1a0-0000-4000-8000-000000000000' : undefined;
    const manager = choices.one(MANAGERS);
    const expected = this.#model.update(name, draft, `${manager}|Update`, { dryRun, status, revision, uid, put: true });
    const body = this.#body(name, draft, {
      ...(revision === undefined ? {} : { resourceVersion: String(revision) }),
      ...(uid === undefined ? {} : { uid }),
    });
    const path = `${this.#path}/${name}${status ? '/status' : ''}${this.#query(manager, dryRun)}`;
    await this.#session.write('PUT', path, name, expected, { body }, dryRun);
  }

  /** Result of a patch, as the model stores it. */
  #patched(before: Stored, tree: Tree): Draft {
    const { finalizers, ...metadata } = (tree['metadata'] ?? {}) as Tree & { finalizers?: string[] };
    return { leaves: leavesOf({ ...tree, metadata }), finalizers: finalizers ?? before.finalizers };
  }

  async #mergePatch(name: string, dryRun: boolean): Promise<void> {
    const choices = this.#choices;
    const before = this.#model.objects.get(name);
    const manager = choices.one(MANAGERS);
    const status = this.#subject.status && choices.chance(0.3);
    const patch = treeOf(this.#leaves()) as Patch;
    for (const path of choices.some(this.#removable(before), 0, 2)) setNull(patch, path.split('/'));
    const finalizers = choices.chance(0.3) ? choices.one(FINALIZERS) : undefined;
    const result = before === undefined ? undefined : this.#patched(before, mergePatched(treeOf(before.leaves), patch));
    const draft = { leaves: result?.leaves ?? new Map(), finalizers: finalizers ?? before?.finalizers ?? [] };
    const revision =
      before !== undefined && choices.chance(0.1) ? choices.one([before.revision, before.revision + 1]) : undefined;
    const expected = this.#model.update(name, draft, `${manager}|Update`, { dryRun, status, revision, put: false });
    const metadata = {
      ...(patch['metadata'] as object | undefined),
      ...(finalizers === undefined ? {} : { finalizers: finalizers.length === 0 ? null : finalizers }),
      ...(revision === undefined ? {} : { resourceVersion: String(revision) }),
    };
    // A strategic patch adds to the list of finalizers instead of replacing it.
    const strategic = this.#subject.strategic && finalizers === undefined && choices.chance(0.5);
    const type = strategic ? 'application/strategic-merge-patch+json' : 'application/merge-patch+json';
    const path = `${this.#path}/${name}${status ? '/status' : ''}${this.#query(manager, dryRun)}`;
    await this.#session.write(
      'PATCH',
      path,
      name,
      expected,
      { raw: JSON.stringify({ ...patch, metadata }), type },
      dryRun,
    );
  }

  #removable(object: Stored | undefined): string[] {
    return [...(object?.leaves.keys() ?? [])].filter((path) => !Object.hasOwn(this.#subject.anchors, path));
  }

  async #jsonPatch(name: string, dryRun: boolean): Promise<void> {
    const choices = this.#choices;
    const before = this.#model.objects.get(name);
    const paths = [...Object.keys(this.#subject.fields), ...Object.keys(LABELS), ...this.#removable(before)].filter(
      (path) => !path.startsWith('status/'),
    );
    const operations = Array.from({ length: 1 + choices.below(3) }, (): Operation => {
      const path = choices.one(paths);
      const values = { ...this.#subject.fields, ...LABELS }[path] ?? ['x'];
      const op = choices.one(['add', 'replace', 'remove', 'test'] as const);
      return { op, path: `/${path}`, ...(op === 'remove' ? {} : { value: choices.one(values) }) };
    });
    const manager = choices.one(MANAGERS);
    // Document for the JSON patch: metadata always exists; `spec` and `data` only if they have values.
    const tree = before === undefined ? undefined : jsonPatched({ metadata: {}, ...treeOf(before.leaves) }, operations);
    const path = `${this.#path}/${name}${this.#query(manager, dryRun)}`;
    const sent = { raw: JSON.stringify(operations), type: 'application/json-patch+json' };
    if (before !== undefined && tree === undefined)
      return this.#session.write(
        'PATCH',
        path,
        name,
        { answer: 'failure', code: 422, reason: 'Invalid' },
        sent,
        dryRun,
      );
    const draft = before === undefined ? { leaves: new Map(), finalizers: [] } : this.#patched(before, tree as Tree);
    const expected = this.#model.update(name, draft, `${manager}|Update`, { dryRun, status: false, put: false });
    await this.#session.write('PATCH', path, name, expected, sent, dryRun);
  }

  async #apply(name: string, dryRun: boolean): Promise<void> {
    const choices = this.#choices;
    const manager = choices.one(MANAGERS);
    const force = choices.chance(0.4);
    const leaves = this.#leaves();
    const expected = this.#model.apply(name, leaves, `${manager}|Apply`, force, dryRun);
    const path = `${this.#path}/${name}${this.#query(manager, dryRun, force ? '&force=true' : '')}`;
    const raw = JSON.stringify(this.#body(name, { leaves, finalizers: [] }));
    await this.#session.write('PATCH', path, name, expected, { raw, type: 'application/apply-patch+yaml' }, dryRun);
  }

  async #delete(name: string, dryRun: boolean): Promise<void> {
    const choices = this.#choices;
    const before = this.#model.objects.get(name);
    const uid = choices.chance(0.2) ? choices.one([before?.uid ?? 'x', 'x']) : undefined;
    const revision =
      choices.chance(0.2) && before !== undefined ? choices.one([before.revision, before.revision + 7]) : undefined;
    const preconditions = {
      ...(uid === undefined ? {} : { uid }),
      ...(revision === undefined ? {} : { resourceVersion: String(revision) }),
    };
    const expected = this.#model.delete(name, { uid, revision, dryRun });
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    };
    const path = `${this.#path}/${name}${dryRun ? '?dryRun=All' : ''}`;
    await this.#session.write('DELETE', path, name, expected, { body }, dryRun);
  }
}

function setNull(patch: Patch, keys: readonly string[]): void {
  let at = patch;
  for (const key of keys.slice(0, -1)) {
    if (typeof at[key] !== 'object' || at[key] === null) at[key] = {};
    at = at[key] as Patch;
  }
  at[keys.at(-1) as string] = null;
}
