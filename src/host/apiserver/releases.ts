/** Files of releases and catalogs on this master, for other hosts. */
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ReleaseSource } from '../../apiserver/server/release-port.ts';
import { CatalogCopies } from '../../openshift/operators/olm/io/index.ts';
import { DigestStore } from '../../openshift/updates/io/index.ts';
import { pathsBelow } from '../config/paths.ts';

const CHUNK_BYTES = 256 * 1024;

/**
 * Source of the files. `configFile`: path of the host's master-config.yaml, from which the root directory is derived.
 */
export function releaseSource(configFile: string): ReleaseSource {
  const paths = pathsBelow(join(configFile, '../../../..'));
  const files = new DigestStore(paths.releases);
  const catalogs = new CatalogCopies(paths.catalogs);
  return {
    open: async (sha256) => {
      const path = await files.pathOf(sha256);
      if (path === undefined) return undefined;
      const { size } = await stat(path);
      return { size, content: createReadStream(path, { highWaterMark: CHUNK_BYTES }) };
    },
    openCatalog: (sha256) => catalogs.open(sha256),
  };
}
