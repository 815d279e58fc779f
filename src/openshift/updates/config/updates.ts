/** `updates` of the bootstrap file: the releases that this host accepts. */

import { messageOf } from '../../../base/errors.ts';
import { parseDuration } from '../../../base/time/duration.ts';
import { checkedString, list, object, type Parsed } from '../../../wire/strict-yaml.ts';
import { parseTrustedKey } from '../io/index.ts';

const DEFAULT_MS = 180_000;
const MIN_MS = 10_000;
const MAX_MS = 3_600_000;

const trustedKey = () =>
  checkedString((text) => {
    try {
      parseTrustedKey(text);
      return undefined;
    } catch (error) {
      return messageOf(error);
    }
  }, 'Ed25519 public key, in PEM or as base64 of its 32 bytes');

export const updatesField = () =>
  object({
    keys: list(trustedKey()),
    healthyWithin: checkedString((text) => {
      const ms = parseDuration(text) ?? 0;
      return ms >= MIN_MS && ms <= MAX_MS ? undefined : 'give a duration such as 3m, from 10s to 1h';
    }, 'duration such as 3m'),
  });

type UpdatesFile = Parsed<{ updates: ReturnType<typeof updatesField> }, 'updates'>['updates'];

export interface UpdateSettings {
  /** Keys of trusted releases, in addition to those of the ConfigMap release-keys. */
  readonly keys: readonly string[];
  /** Time in milliseconds within which the host must become healthy with a new executable. */
  readonly healthyWithinMs: number;
}

export const updatesOf = (file: UpdatesFile | undefined): UpdateSettings => ({
  keys: file?.keys ?? [],
  healthyWithinMs: parseDuration(file?.healthyWithin ?? '') ?? DEFAULT_MS,
});

/** Fields for `hyperedge config show`. */
export const effectiveUpdates = ({ keys, healthyWithinMs }: UpdateSettings): [string, unknown][] => [
  ['updates.keys', keys],
  ['updates.healthyWithin', `${healthyWithinMs / 1000}s`],
];
