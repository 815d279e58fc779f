import { join } from 'node:path';
import { HELLO_IMAGE, writeHelloImage } from '../../build/hello-image.ts';
import type { Appliance } from './harness.ts';

export const helloImage = HELLO_IMAGE;

/** Imports the sample image as on an air-gapped host. */
export async function importHelloImage(appliance: Appliance, scratch: string): Promise<void> {
  const archive = join(scratch, 'hello-image.tar');
  await writeHelloImage(archive);
  const imported = await appliance.hyperedge(['image', 'import', '--root', appliance.root, archive]);
  if (imported.code !== 0) throw new Error(`image import: exit ${imported.code}\n${imported.stdout}${imported.stderr}`);
}
