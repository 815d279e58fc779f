/**
 * Rotation of the ring's keys with Serf's queries (serf/internal_query.go, keymanager.go). `serf keys` can rotate the
 * keys of these members, and these members can rotate the keys of stock agents.
 */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { KeyAnswer, SerfCodec } from '../core/port.ts';
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
/**
 * Number of times that queries are sent. Queries and responses are datagrams and may be lost; a repeated query has no
 * further effect.
 */
const ROUNDS = 3;

/** Handles key queries on this host. */
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
      if (key === undefined) return refused('the query contains no key');
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
 * Performs `action` on every present member, including this member. Unlike Serf, it rejects actions that would
 * disconnect members (`key-missing`, `key-in-use`): the use of a key that a member does not have, and the removal of a
 * key with which a member encrypts.
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
  if (action === 'list') return reportOf(deps, await queryAll(deps, 'list', undefined));
  if (key === undefined) throw new CodedError('bad-request', `keys ${action}: give the key, in base64`);
  const text = Buffer.from(key).toString('base64');
  if (action === 'use') {
    const without = [...(await queryAll(deps, 'list', undefined))].filter(
      ([, each]) => each?.keys.includes(text) !== true,
    );
    if (without.length > 0)
      throw new CodedError(
        'key-missing',
        `${names(without)} did not confirm that it has the key: install the key first`,
      );
  }
  if (action === 'remove') {
    const using = [...(await queryAll(deps, 'list', undefined))].filter(([, each]) => each?.primary === text);
    if (using.length > 0)
      throw new CodedError('key-in-use', `${names(using)} encrypts with this key: use another key first`);
  }
  return reportOf(deps, await queryAll(deps, action, key));
}

type Answers = ReadonlyMap<string, KeyAnswer | undefined>;

/** Responses of all present members, by name; undefined for a member that did not respond. */
async function queryAll(deps: KeyRotationDeps, action: KeyAction, key: Uint8Array | undefined): Promise<Answers> {
  const { membership, serf, self } = deps;
  const payload = key === undefined ? new Uint8Array() : serf.encodeKey(key);
  const answers = new Map<string, KeyAnswer | undefined>([[self, undefined]]);
  for (const member of membership.members())
    if (member.state === 'alive' || member.state === 'suspect') answers.set(member.name, undefined);
  const own = async (): Promise<void> => {
    answers.set(self, await perform(deps.keys, action, key));
  };
  // This member installs a new key before other members encrypt with it, and removes an old key after the other
  // members.
  if (action !== 'remove') await own();
  for (let round = 0; round < ROUNDS; round++) {
    const missing = [...answers].flatMap(([name, answer]) => (answer === undefined && name !== self ? [name] : []));
    if (missing.length === 0) break;
    for (const [name, bytes] of await membership.query(QUERY[action], payload, missing)) {
      const answer = serf.decodeKeyAnswer(bytes) ?? {
        done: false,
        message: 'the response is not valid',
        keys: [],
        primary: '',
      };
      answers.set(name, answer);
    }
  }
  if (action === 'remove') {
    const refused = [...answers].some(([, answer]) => answer?.done === false);
    if (refused)
      answers.set(self, { done: false, message: 'not removed, because a member refused', keys: [], primary: '' });
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
