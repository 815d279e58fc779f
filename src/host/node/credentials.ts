import type { Log } from '../../base/log.ts';
import { readProviders } from '../../kubelet/config/credential-providers.ts';
import { createCredentialProviders } from '../../kubelet/io/credential-providers/index.ts';
import type { CredentialProviders } from '../../kubelet/ports/credentials-port.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock } from '../process/process.ts';

/** Credential providers named in the bootstrap file. Throws CodedError 'bad-config'. */
export async function credentialProviders({ embedded }: Settings, log: Log): Promise<CredentialProviders | undefined> {
  const given = embedded.images.credentialProviders;
  if (given === undefined) return undefined;
  return createCredentialProviders({
    directory: given.directory,
    providers: await readProviders(given.config),
    nowMs: () => systemClock.monotonicMs(),
    log: log.named('credentials'),
  });
}
