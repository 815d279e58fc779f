import { UsageError } from '../../command.ts';

export function revisionOf(text: string | undefined): number {
  if (text === undefined || !/^[1-9]\d{0,8}$/.test(text))
    throw new UsageError(
      `revision "${text ?? ''}": give the number of a revision, as hyperedge revisions list shows it`,
    );
  return Number(text);
}
