/** Reports the copies of catalogs of this master in an annotation of its Node. */
import { CATALOGS_ANNOTATION } from '../../api/kinds/nodes/catalog-report.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient } from '../../client/types.ts';
import { CatalogDigests } from '../../io/catalogs/index.ts';

/** A look costs a few calls of the file system; nothing is written while nothing changes. */
const LOOK_MS = 15_000;

/** Until the returned function is called. */
export function reportCatalogs(directory: string, nodeName: string, client: ApiClient, log: Log): () => void {
  const digests = new CatalogDigests(directory);
  let written: string | undefined;
  let isBusy = false;
  const look = async (): Promise<void> => {
    const found = JSON.stringify(await digests.all());
    if (found === written) return;
    const annotations = { [CATALOGS_ANNOTATION]: found };
    await client.resource(resources.nodes).patch(nodeName, undefined, 'merge', { metadata: { annotations } });
    written = found;
  };
  const timer = setInterval(() => {
    if (isBusy) return;
    isBusy = true;
    look()
      .catch((error: unknown) => log.v(2, 'catalogs not reported; retrying', { error: messageOf(error) }))
      .finally(() => {
        isBusy = false;
      });
  }, LOOK_MS).unref();
  return () => clearInterval(timer);
}
