export { type PullSpec, parsePullSpec, splitTagName } from './reference.ts';
export {
  type FoundImage,
  latestEvent,
  recordFailure,
  recordImage,
  removeTag,
  scheduledTags,
  setSpecTag,
  specTag,
  tagNames,
  tagsToImport,
} from './streams.ts';
export { planTriggers, triggersOf } from './triggers.ts';
