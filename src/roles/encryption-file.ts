/** The encryption configuration, followed while the server runs. A file that turns bad changes nothing but the log. */
import { readFile } from 'node:fs/promises';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { EncryptionConfiguration, EncryptionSource } from '../components/apiserver/index.ts';
import { createKmsPlugin } from '../io/grpc/index.ts';
import { type OpenKmsPlugin, parseEncryption } from './config/encryption.ts';
import { readSecret } from './files.ts';
import { systemClock as clock } from './process.ts';

/** How soon a changed file is noticed. */
const LOOK_MS = 2_000;

export interface FollowedEncryption extends EncryptionSource {
  stop(): void;
}

/** Throws CodedErrors for a file that cannot be read or understood now. `follow` false: what it says at first stays. */
export async function openEncryption(
  file: string,
  options: { readonly referredToBy: string; readonly follow: boolean; readonly log: Log },
): Promise<FollowedEncryption> {
  const { log } = options;
  // A plug-in keeps its connection when other lines of the file change.
  const plugins = new Map<string, ReturnType<OpenKmsPlugin>>();
  const open: OpenKmsPlugin = ({ socket, timeoutMs }) => {
    const key = `${socket}\n${timeoutMs}`;
    const known = plugins.get(key);
    if (known !== undefined) return known;
    const plugin = createKmsPlugin({ socket, timeoutMs, clock, log: log.named('kms') });
    plugins.set(key, plugin);
    return plugin;
  };
  let text = await readSecret(file, options.referredToBy);
  let current = parseEncryption(text, file, open);
  let complained = '';
  const refresh = async (): Promise<void> => {
    try {
      const now = await readFile(file, 'utf8');
      if (now === text) return;
      current = parseEncryption(now, file, open);
      text = now;
      complained = '';
      log.info('encryption configuration read anew', { file });
    } catch (error) {
      const message = messageOf(error);
      if (message !== complained) log.error('encryption configuration is kept as it was', { error: message });
      complained = message;
    }
  };
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    refresh().finally(() => {
      looking = false;
    });
  }, LOOK_MS);
  timer.unref();
  if (!options.follow) clearInterval(timer);
  return {
    get current(): EncryptionConfiguration {
      return current;
    },
    refresh: options.follow ? refresh : async () => {},
    stop: () => {
      clearInterval(timer);
      for (const plugin of plugins.values()) plugin.close();
    },
  };
}
