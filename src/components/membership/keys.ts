/**
 * Rotation of the ring's keys, asked and answered as Serf does (serf/internal_query.go, keymanager.go), so that `serf
 * keys` of a stock agent reaches our members and ours reaches stock agents.
 */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { KeyAnswer, SerfCodec } from '../../core/gossip/port.ts';
import type { KeyAction, KeyReport } from './agent-port.ts';
import type { Membership } from './deps.ts';
import type { KeyStore } from './port.ts';
import type { AnswerQuery } from './queries.ts';

const QUERY: Readonly<Record<KeyAction, string>> = {
  list: '_serf_list-keys',
  install: '_serf_install-key',
  use: '_serf_use-key',
  remove: '_serf_remove-key',
};
/** Questions and answers are datagrams and may get lost; doing the same again changes nothing. */
const ROUNDS = 3;

/** What this host answers to questions about keys. */
export function answerKeyQueries(keys: KeyStore | undefined, serf: SerfCodec): AnswerQuery {
  return async (name, payload) => {
    const action = (Object.keys(QUERY) as KeyAction[]).find((each) => QUERY[each] === name);
    if (action === undefined) return undefined;
    return serf.encodeKeyAnswer(await perform(keys, action, serf.decodeKey(payload)));
  };
}

async function perform(keys: KeyStore | undefined, action: KeyAction, key: Uint8Array | undefined): Promise<KeyAnswer> {
  const refused = (message: string): KeyAnswer => ({ done: false, message, keys: [], primary: '' });
  if (keys === undefined) return refused('this ring is not encrypted: there is no keyring to change');
  try {
    if (action !== 'list') {
      if (key === undefined) return refused('the question names no key');
      await keys[action](key);
      return { done: true, message: '', keys: [], primary: '' };
    }
    const all = keys.keys().map((each) => Buffer.from(each).toString('base64'));
    return { done: true, message: '', keys: all, primary: all[0] ?? '' };
  } catch (error) {
    return refused(messageOf(error));
  }
}

export interface KeyRotationDeps {
  readonly membership: Membership;
  readonly self: string;
  readonly keys: KeyStore | undefined;
  readonly serf: SerfCodec;
}

/**
 * Does `action` on every member that is present, this one included. Beyond what Serf does it refuses (`key-missing`,
 * `key-in-use`) what would cut members off: using a key that somebody lacks, removing one that somebody encrypts with.
 */
export async function rotateKeys(
  deps: KeyRotationDeps,
  action: KeyAction,
  key: Uint8Array | undefined,
): Promise<KeyReport> {
  if (deps.keys === undefined)
    throw new CodedError(
      'no-keyring',
      'this ring is not encrypted: give every member a keyring file and start it again',
    );
  if (action === 'list') return reportOf(deps, await askAll(deps, 'list', undefined));
  if (key === undefined) throw new CodedError('bad-request', `keys ${action}: give the key, in base64`);
  const text = Buffer.from(key).toString('base64');
  if (action === 'use') {
    const without = [...(await askAll(deps, 'list', undefined))].filter(
      ([, each]) => each?.keys.includes(text) !== true,
    );
    if (without.length > 0)
      throw new CodedError('key-missing', `${names(without)} could not show that it has the key: install it first`);
  }
  if (action === 'remove') {
    const using = [...(await askAll(deps, 'list', undefined))].filter(([, each]) => each?.primary === text);
    if (using.length > 0)
      throw new CodedError('key-in-use', `${names(using)} encrypts with the key at present: use another one first`);
  }
  return reportOf(deps, await askAll(deps, action, key));
}

type Answers = ReadonlyMap<string, KeyAnswer | undefined>;

/** The answer of everybody present; undefined of those that gave none. */
async function askAll(deps: KeyRotationDeps, action: KeyAction, key: Uint8Array | undefined): Promise<Answers> {
  const { membership, serf, self } = deps;
  const payload = key === undefined ? new Uint8Array() : serf.encodeKey(key);
  const answers = new Map<string, KeyAnswer | undefined>([[self, undefined]]);
  for (const member of membership.members())
    if (member.state === 'alive' || member.state === 'suspect') answers.set(member.name, undefined);
  const own = async (): Promise<void> => {
    answers.set(self, await perform(deps.keys, action, key));
  };
  // This member reads with a key before the others write with it, and stops only after them.
  if (action !== 'remove') await own();
  for (let round = 0; round < ROUNDS; round++) {
    const missing = [...answers].flatMap(([name, answer]) => (answer === undefined && name !== self ? [name] : []));
    if (missing.length === 0) break;
    for (const [name, bytes] of await membership.ask(QUERY[action], payload, missing)) {
      const answer = serf.decodeKeyAnswer(bytes) ?? {
        done: false,
        message: 'answered something else',
        keys: [],
        primary: '',
      };
      answers.set(name, answer);
    }
  }
  if (action === 'remove') {
    const refused = [...answers].some(([, answer]) => answer?.done === false);
    if (refused) answers.set(self, { done: false, message: 'kept, because a member refused', keys: [], primary: '' });
    else await own();
  }
  return answers;
}

function reportOf({ keys }: KeyRotationDeps, answers: Answers): KeyReport {
  const counts = new Map<string, { members: number; primaryOn: number }>();
  for (const answer of answers.values())
    for (const key of answer?.keys ?? []) {
      const count = counts.get(key) ?? { members: 0, primaryOn: 0 };
      count.members++;
      if (answer?.primary === key) count.primaryOn++;
      counts.set(key, count);
    }
  const [primary] = keys?.keys() ?? [];
  return {
    members: answers.size,
    done: [...answers.values()].filter((answer) => answer?.done === true).length,
    failures: [...answers].flatMap(([member, answer]) => {
      if (answer === undefined) return [{ member, message: 'did not answer' }];
      return answer.done ? [] : [{ member, message: answer.message }];
    }),
    keys: [...counts].map(([key, count]) => ({ key, ...count })),
    primary: primary === undefined ? '' : Buffer.from(primary).toString('base64'),
  };
}

function names(entries: readonly (readonly [string, unknown])[]): string {
  return entries.map(([name]) => name).join(', ');
}
