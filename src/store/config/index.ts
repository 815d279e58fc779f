/**
 * etcd's flags, environment variables and configuration file, as `hyperedge etcd` accepts them. The result is an
 * `EtcdSettings`.
 */

export type { EtcdUrl } from '../../wire/go-flag-values.ts';
export { readFile } from './file.ts';
export { flagHelp } from './flags.ts';
export { EtcdUsageProblem, hasEtcdVariables, readArguments, readEnvironment } from './given-values.ts';
export { type EtcdParsed, settingsOf } from './parse.ts';
export type { EtcdLogSettings, EtcdSettings, EtcdTlsLimits, EtcdTlsSettings } from './settings.ts';
export { isSecure } from './tls.ts';
