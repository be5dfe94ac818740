"""The networks of bench/gpu.py as PyTorch users write them, with random weights."""
import torch
from torch import nn
from torch.nn import functional as F


class Bottleneck(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.skip = None
        if stride != 1 or channels != 4 * width:
            self.skip = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        y = F.relu(self.bn2(self.conv2(y)))
        return F.relu(self.bn3(self.conv3(y)) + (x if self.skip is None else self.skip(x)))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Squeeze(nn.Module):
    def __init__(self, channels):
        super().__init__()
        inner = (channels // 4 + 4) // 8 * 8
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    def __init__(self, inputs, kernel, hidden, outputs, squeezes, activation, stride):
        super().__init__()
        layers = []
        if hidden != inputs:
            layers += [nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), activation()]
        layers += [nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False), nn.BatchNorm2d(hidden),
                   activation()]
        if squeezes:
            layers.append(Squeeze(hidden))
        layers += [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
        self.body = nn.Sequential(*layers)
        self.adds = stride == 1 and inputs == outputs

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet_v3_large():
    r, h = nn.ReLU, nn.Hardswish
    rows = [(3, 16, 16, False, r, 1), (3, 64, 24, False, r, 2), (3, 72, 24, False, r, 1), (5, 72, 40, True, r, 2),
            (5, 120, 40, True, r, 1), (5, 120, 40, True, r, 1), (3, 240, 80, False, h, 2), (3, 200, 80, False, h, 1),
            (3, 184, 80, False, h, 1), (3, 184, 80, False, h, 1), (3, 480, 112, True, h, 1), (3, 672, 112, True, h, 1),
            (5, 672, 160, True, h, 2), (5, 960, 160, True, h, 1), (5, 960, 160, True, h, 1)]
    layers = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), h()]
    channels = 16
    for kernel, hidden, outputs, squeezes, activation, stride in rows:
        layers.append(Inverted(channels, kernel, hidden, outputs, squeezes, activation, stride))
        channels = outputs
    layers += [nn.Conv2d(160, 960, 1, bias=False), nn.BatchNorm2d(960), h(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(960, 1280), h(), nn.Linear(1280, 1000))


class Block(nn.Module):
    """A layer of a transformer; `first`: it normalises before attention, as ViT does, not after, as BERT does."""

    def __init__(self, width, heads, first, epsilon):
        super().__init__()
        self.heads, self.first = heads, first
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, epsilon), nn.LayerNorm(width, epsilon)

    def attend(self, x, mask):
        n, tokens, width = x.shape
        q, k, v = self.qkv(x).view(n, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(n, tokens, width))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.down(F.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class VisionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.token, self.positions = nn.Parameter(torch.zeros(1, 1, 768)), nn.Parameter(torch.randn(1, 197, 768))
        self.blocks = nn.ModuleList(Block(768, 12, True, 1e-6) for _ in range(12))
        self.norm, self.head = nn.LayerNorm(768, 1e-6), nn.Linear(768, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(30522, 768), nn.Embedding(512, 768), nn.Embedding(2, 768)
        self.norm = nn.LayerNorm(768, 1e-12)
        self.blocks = nn.ModuleList(Block(768, 12, False, 1e-12) for _ in range(12))
        self.pooler = nn.Linear(768, 768)

    def forward(self, tokens, mask):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.words(tokens) + self.places(places) + self.kinds.weight[0])
        mask = mask[:, None, None, :].bool()
        for block in self.blocks:
            x = block(x, mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


def make(name):
    networks = {"resnet50": resnet50, "mobilenet_v3_large": mobilenet_v3_large, "vit_b_16": VisionTransformer,
                "bert_base": Bert}
    torch.manual_seed(0)
    return networks[name]().eval()


def inputs_of(name, batch, dtype, device):
    if name == "bert_base":
        tokens = torch.randint(0, 30522, (batch, 128), device=device)
        return (tokens, torch.ones(batch, 128, dtype=torch.int64, device=device))
    return (torch.randn(batch, 3, 224, 224, device=device, dtype=dtype),)
