/** `hyperedge console`: a one-time link to the web console. */
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { decode, number, object, text } from '../../base/decode.ts';
import { silentLog } from '../../base/log.ts';
import { hashPassword } from '../../openshift/oauth/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import { loadSettings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { openAssets } from '../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { KUBEADMIN, kubeadminSecret, newPassword } from './kubeadmin.ts';

/** Path of the API server that issues links. */
const PATH = '/hyperedge/console-link';
const LINK = object({ url: text, seconds: number });

export interface ConsoleLink {
  readonly url: string;
  /** The link can be used once within this time. */
  readonly seconds: number;
}

/**
 * Requests a link that logs in as kube:admin. If the secret of that user is missing, it is created with a password that
 * is not shown. Throws CodedErrors and ApiErrors.
 */
export async function createConsoleLink(root: string | undefined): Promise<ConsoleLink> {
  const settings = await loadSettings({ root });
  const opened = await openClient(masterFiles(settings.root).adminKubeconfig, 'hyperedge', {
    clock,
    random,
    log: silentLog,
  });
  try {
    const secrets = opened.client.resource(resources.secrets);
    try {
      await secrets.get(KUBEADMIN.name, KUBEADMIN.namespace);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
      await openAssets();
      await secrets.create(kubeadminSecret(await hashPassword(newPassword())));
    }
    return decode(LINK, await opened.client.request<unknown>('POST', PATH), 'console link');
  } finally {
    await opened.close();
  }
}
