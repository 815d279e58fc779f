/** The encryption configuration, reloaded on change. An invalid file is logged and not used. */

import { type OpenKmsPlugin, parseEncryption } from '../../apiserver/config/encryption.ts';
import type { EncryptionConfiguration, EncryptionSource, Reloads } from '../../apiserver/index.ts';
import { createKmsPlugin } from '../../apiserver/io/kms-plugin.ts';
import type { Log } from '../../base/log.ts';
import { type OpenSecret, readSecret } from '../config/files.ts';
import { followFile } from '../config/followed-file.ts';
import { systemClock as clock } from '../process/process.ts';

export interface FollowedEncryption extends EncryptionSource {
  readonly reloads: Reloads;
  stop(): void;
}

/**
 * Opens the configuration. `follow`: whether the file is reloaded on change. Throws CodedErrors for an unreadable or
 * invalid file.
 */
export async function openEncryption(
  file: string,
  options: {
    readonly referredToBy: string;
    readonly follow: boolean;
    readonly log: Log;
    /** Called for a file that other users can read or write; if undefined, it is rejected. */
    readonly onOpenSecret?: OpenSecret | undefined;
  },
): Promise<FollowedEncryption> {
  const { log } = options;
  // A KMS plug-in keeps its connection when other parts of the file change.
  const plugins = new Map<string, ReturnType<OpenKmsPlugin>>();
  const open: OpenKmsPlugin = ({ socket, timeoutMs }) => {
    const key = `${socket}\n${timeoutMs}`;
    const known = plugins.get(key);
    if (known !== undefined) return known;
    const plugin = createKmsPlugin({ socket, timeoutMs, clock, log: log.named('kms') });
    plugins.set(key, plugin);
    return plugin;
  };
  const followed = await followFile(file, {
    what: 'encryption',
    log,
    first: () => readSecret(file, options.referredToBy, options.onOpenSecret),
    read: () => readSecret(file, options.referredToBy, options.onOpenSecret === undefined ? undefined : () => {}),
    parse: (text) => parseEncryption(text, file, open),
  });
  if (!options.follow) followed.stop();
  return {
    get current(): EncryptionConfiguration {
      return followed.current;
    },
    get reloads(): Reloads {
      return followed.reloads;
    },
    refresh: options.follow ? followed.refresh : async () => {},
    stop: () => {
      followed.stop();
      for (const plugin of plugins.values()) plugin.close();
    },
  };
}
