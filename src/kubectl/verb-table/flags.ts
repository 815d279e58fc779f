/** Flags and usage texts that several verbs share. */
import type { FlagSpec, FlagSpecs } from '../core/flags.ts';
import { DRY_RUN_FLAG, OUTPUT_FLAGS } from '../printing.ts';

export const bool = (help: string, short?: string): FlagSpec => ({
  type: 'bool',
  help,
  ...(short === undefined ? {} : { short }),
});
export const text = (value: string, help: string, more: Partial<FlagSpec> = {}): FlagSpec => ({
  type: 'string',
  value,
  help,
  ...more,
});
export const int = (value: string, help: string, more: Partial<FlagSpec> = {}): FlagSpec => ({
  type: 'int',
  value,
  help,
  ...more,
});
export const list = (value: string, help: string, short?: string): FlagSpec => ({
  type: 'list',
  value,
  help,
  ...(short === undefined ? {} : { short }),
});

export const WRITE_FLAGS: FlagSpecs = {
  'dry-run': DRY_RUN_FLAG,
  'field-manager': text('NAME', 'name of the owner of the fields'),
};
export const PRINTED_WRITE: FlagSpecs = { ...WRITE_FLAGS, ...OUTPUT_FLAGS };
export const VALIDATE: FlagSpec = {
  type: 'string',
  bare: 'true',
  value: 'MODE',
  help: 'strict, warn or ignore: unknown and duplicate fields',
};
export const HEADERS: FlagSpecs = { 'no-headers': bool('omit the header of a table') };
export const CONTAINER = text('NAME', 'name of the container', { short: 'c' });
export const TIMEOUT = text('TIME', 'time limit, such as 30s; 0s is none', { default: '0s' });
export const GRACE = int('SECONDS', 'time for the pods to end; -1 is their own', { default: '-1' });

export const CREATED: FlagSpecs = {
  ...PRINTED_WRITE,
  validate: VALIDATE,
  'save-config': bool('accepted for compatibility'),
};
export const HASH: FlagSpecs = { 'append-hash': bool('add a hash of the content to the name') };
export const CONTENT: FlagSpecs = {
  ...HASH,
  'from-literal': list('KEY=VALUE', 'a key with its value; may be repeated'),
  'from-file': list('[KEY=]FILE', 'a file or directory; may be repeated'),
  'from-env-file': list('FILE', 'lines of KEY=VALUE; may be repeated'),
};
export const SUBJECTS: FlagSpecs = {
  user: list('NAME', 'user; may be repeated'),
  group: list('NAME', 'group; may be repeated'),
  serviceaccount: list('NAMESPACE:NAME', 'service account; may be repeated'),
};
export const PORTS: FlagSpecs = { tcp: list('PORT[:TARGET]', 'port; may be repeated') };
export const IMAGE: FlagSpecs = { image: list('IMAGE', 'image of the container') };
export const WORKLOAD = '(TYPE NAME | TYPE/NAME)';
export const OBJECTS = '(-f FILE | TYPE [NAME…] | TYPE/NAME…)';
