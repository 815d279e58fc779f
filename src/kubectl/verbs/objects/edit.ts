/** `edit`: changes an object in the user's editor. Source: k8s.io/kubectl/pkg/cmd/util/editor. */

import { jsonDocument } from '../../core/encode.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, withoutManagedFields } from '../../core/objects.ts';
import { yamlText } from '../../core/yaml-writer.ts';
import { documentsIn } from '../../documents.ts';
import type { VerbContext } from '../../port.ts';
import { nameOf, writeQuery } from '../../printing.ts';
import { errorLine, withSession } from '../../run.ts';
import { currentObject, pathOfTarget, targetsOf } from '../../targets.ts';

const HEADER = [
  "# Please edit the object below. Lines beginning with a '#' will be ignored,",
  '# and an empty file will abort the edit. If an error occurs while saving this file will be',
  '# reopened with the relevant failures.',
  '#',
];

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, system } = context;
    const subresource = flags.text('subresource') || undefined;
    const isJson = flags.text('output') === 'json';
    for (const target of await targetsOf(session)) {
      const object = withoutManagedFields(await currentObject(session, target, subresource));
      const original = isJson ? jsonDocument(object) : yamlText(object);
      let text = original;
      let problem = '';
      for (;;) {
        const note =
          problem === ''
            ? ''
            : `${problem
                .split('\n')
                .map((line) => `# ${line}\n`)
                .join('')}#\n`;
        const shown = isJson ? text : `${HEADER.join('\n')}\n${note}${text}`;
        const edited = await system.edit(`${target.resource.kind.toLowerCase()}.${isJson ? 'json' : 'yaml'}`, shown);
        const content = edited.text
          .split('\n')
          .filter((line) => !line.startsWith('#'))
          .join('\n');
        if (content.trim() === '' || content.trim() === original.trim()) {
          io.err(`Edit cancelled, ${content.trim() === '' ? 'saved file was empty' : 'no changes made'}.\n`);
          break;
        }
        if (problem !== '' && content === text) throw await unsaved(context, content);
        text = content;
        try {
          const [next] = (await documentsIn('the edited file', content)) as AnyObject[];
          if (next?.metadata?.name !== target.name) throw new ClientError('the name of an object must not change');
          const after = await session.send('PUT', pathOfTarget(target, subresource), {
            query: { ...writeQuery(flags, 'kubectl-edit'), fieldValidation: 'Strict' },
            body: next,
          });
          io.out(`${nameOf(after)} edited\n`);
          break;
        } catch (error) {
          problem = errorLine(error);
          // Without a terminal, the editor would write the same invalid file again.
          if (io.isInputTerminal) continue;
          io.err(`${problem}\n`);
          throw await unsaved(context, content);
        }
      }
    }
    return 0;
  });

/** Stores changes that could not be saved, so that the user can continue with them. */
async function unsaved({ flags, io, system }: VerbContext, content: string): Promise<ClientError> {
  const path = await system.keep(`edit.${flags.text('output') === 'json' ? 'json' : 'yaml'}`, content);
  io.err(`A copy of your changes has been stored to "${path}"\n`);
  return new ClientError('Edit cancelled, no valid changes were saved.');
}
